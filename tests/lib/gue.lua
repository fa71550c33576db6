-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- GUE, variant 0, without optional fields, which this tshark does not know: for `-d udp.port==6080,gue`.
-- Where it finds no IP packet behind a header of its kind, gue stays the last protocol of the frame.
local gue = Proto("gue", "Generic UDP Encapsulation")
local inside = {[0x0004] = {4, Dissector.get("ip")}, [0x0029] = {6, Dissector.get("ipv6")}}

function gue.dissector(buffer, info, tree)
	tree:add(gue, buffer(0, math.min(4, buffer:len())))
	if buffer:len() <= 4 then
		return
	end
	local kind = inside[buffer(0, 2):uint()]
	if kind and buffer(2, 2):uint() == 0 and buffer(4, 1):bitfield(0, 4) == kind[1] then
		kind[2]:call(buffer(4):tvb(), info, tree)
	end
end

DissectorTable.get("udp.port"):add_for_decode_as(gue)
