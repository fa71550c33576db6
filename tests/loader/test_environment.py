# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the host allows: privileges, bpffs, JIT, limits.  Mounts are made in mount namespaces of their own."""

from conftest import LOADER, run
from lab import TOP


def in_mount_namespace(net, script, *words):
    """The script, then shunt-loader with the words; mounts end with it."""
    line = " ".join(str(w) for w in (LOADER, *words, "--instance", net.instance))
    return net.run("a", "unshare", "-m", "--propagation", "private", "sh", "-euc", f"{script}\nexec {line}")


def without(*capabilities):
    gone = ",".join(f"-{c}" for c in capabilities)
    return ["setpriv", f"--bounding-set={gone}", f"--inh-caps={gone}"]


def test_missing_capabilities_are_named(net):
    done = net.loader("attach", "eth0", before=without("bpf", "perfmon", "sys_admin"))
    assert done.code == 1 and "CAP_BPF, CAP_PERFMON" in done.err and "CAP_NET_ADMIN" not in done.err, done
    assert net.xdp("eth0") is None
    done = net.loader("attach", "eth0", before=without("net_admin", "sys_admin"))
    assert done.code == 1 and "CAP_NET_ADMIN" in done.err, done
    assert net.xdp("eth0") is None


def test_not_root(net):
    for words in (("attach", "eth0"), ("detach", "eth0"), ("upgrade",), ("status",)):
        done = net.loader(*words, before=["setpriv", "--reuid", "65534", "--clear-groups"])
        assert done.code == 1 and "run it as root" in done.err, (words, done)


def test_three_capabilities_are_enough(net):
    """CAP_SYS_ADMIN is not needed: nothing is opened by its id.  (root's files are, here, root's.)"""
    drop = without("sys_admin", "sys_resource", "net_raw", "sys_module", "sys_ptrace")
    for words in (("attach", "eth0"), ("attach", "eth0"), ("upgrade",), ("upgrade", "--backends", "20"), ("status",),
                  ("detach", "eth0")):
        net.must(net.loader(*words, before=drop))
    assert net.xdp("eth0") is None


def test_locked_memory_limit_does_not_matter(net):
    net.must(net.loader("attach", "eth0", before=[*without("sys_resource"), "prlimit", "--memlock=65536:65536"]))


def test_bpffs_is_mounted_if_it_may(net):
    done = in_mount_namespace(net, "umount /sys/fs/bpf; ! mountpoint -q /sys/fs/bpf", "attach", "eth0")
    assert done.code == 0 and "eth0: attached" in done.out, done
    assert not net.pins.exists()  # it went with the mount namespace, and so did the link


def test_bpffs_that_may_not_be_mounted(net):
    drop = " ".join(without("sys_admin"))
    line = f"{LOADER} attach eth0 --instance {net.instance}"
    done = net.run("a", "unshare", "-m", "--propagation", "private", "sh", "-euc",
                   f"umount /sys/fs/bpf\nexec {drop} {line}")
    assert done.code == 1 and "`mount -t bpf bpf /sys/fs/bpf`" in done.err, done
    assert net.xdp("eth0") is None


def test_another_file_system_in_place_of_bpffs(net):
    done = in_mount_namespace(net, "mount -t tmpfs none /sys/fs/bpf", "attach", "eth0")
    assert done.code == 1 and "another file system" in done.err and "mount -t bpf" in done.err, done
    assert net.xdp("eth0") is None


def test_jit_off_is_said(net, tmp_path):
    (tmp_path / "off").write_text("0\n")
    (tmp_path / "on").write_text("1\n")
    switch = "/proc/sys/net/core/bpf_jit_enable"
    # A file of ours in its place: the host's setting is not touched.
    script = f"[ -e {switch} ] || {{ mount -t tmpfs none /proc/sys/net/core; : >{switch}; }}; mount --bind {tmp_path}"
    done = in_mount_namespace(net, f"{script}/off {switch}", "attach", "eth0")
    assert done.code == 0 and "sysctl -w net.core.bpf_jit_enable=1" in done.err, done
    done = in_mount_namespace(net, f"{script}/on {switch}", "attach", "eth0")
    assert done.code == 0 and "jit" not in done.err, done


def test_objects_that_are_not_there(net, tmp_path):
    done = net.loader("attach", "eth0", env={"SHUNT_OBJECT_DIR": str(tmp_path)})
    assert done.code == 1 and f"{tmp_path}: no readable shunt.bpf.o there" in done.err
    (tmp_path / "shunt.bpf.o").write_bytes(b"\x7fELF" + bytes(200))
    done = net.loader("attach", "eth0", env={"SHUNT_OBJECT_DIR": str(tmp_path)})
    assert done.code == 1 and "is no BPF object" in done.err
    assert net.xdp("eth0") is None


def test_another_map_in_place_of_a_pinned_one(net):
    net.attach("eth0")
    net.must(net.loader("detach", "eth0"))
    (net.pins / "v1/backends").unlink()
    net.sh("a", f"bpftool map pin pinned {net.pins}/v1/ifaces {net.pins}/v1/backends")
    done = net.loader("attach", "eth0")
    assert done.code == 1 and f"{net.pins}/v1/backends" in done.err and f"remove the folder {net.pins}/v1" in done.err
    assert net.xdp("eth0") is None


def test_maps_of_somebody_else_in_place_of_an_instance(net):
    folder = net.pins / "v1"
    folder.mkdir(parents=True)
    net.sh("a", f"bpftool map create {folder}/meta type array key 4 value 4 entries 1 name meta")
    done = net.loader("attach", "eth0")
    assert done.code == 1 and f"{folder}/meta is not of shunt" in done.err and f"remove the folder {folder}" in done.err
    assert net.xdp("eth0") is None


def test_installed_where_make_install_puts_it(net, tmp_path):
    net.must(run("make", "-s", "-C", TOP, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr"))
    installed = tmp_path / "usr/sbin/shunt-loader"
    done = net.run("a", installed, "attach", "eth0", "--instance", net.instance)
    assert done.code == 0 and net.xdp("eth0")[0] == "native", done
