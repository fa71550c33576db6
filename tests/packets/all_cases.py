# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cases of the load balancer, in one list, and those of shunt_decap."""

import cases_answers
import cases_decap
import cases_decap_gue
import cases_encap
import cases_gue
import cases_icmp
import cases_ipv4
import cases_ipv6
import cases_link
import cases_service

CASES = (cases_link.CASES + cases_ipv4.CASES + cases_ipv6.CASES + cases_service.CASES + cases_encap.CASES +
         cases_icmp.CASES + cases_answers.CASES + cases_gue.CASES)
DECAP_CASES = cases_decap.CASES + cases_decap_gue.CASES
