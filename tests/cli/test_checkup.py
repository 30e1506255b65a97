from __future__ import annotations

import pytest

from topics.cli import checkup
from topics.cli.checkup import Finding, Verdict
from topics.limits import DAY_MS, GIB, MIB

NOW = 1_780_420_000_000


@pytest.mark.parametrize(
    ("finding", "verdict", "says"),
    [
        (checkup.sync_speed([100.0, 200.0, 900.0]), "ok", "200 µs to make 4 KiB durable, 900 µs at worst of 3"),
        (checkup.sync_speed([3000.0, 5000.0, 90_000.0]), "warning", "5.0 ms"),
        (checkup.sync_speed([30_000.0]), "bad", "30.0 ms"),
        (checkup.sync_speed([3.0] * 5), "warning", "no disk is that fast"),
        (checkup.file_system("ext4", "/"), "ok", "ext4 on /"),
        (checkup.file_system("tmpfs", "/tmp"), "bad", "set TOPICS_DATA_DIR to a disk"),
        (checkup.file_system("nfs4", "/mnt"), "warning", "local disk"),
        (checkup.file_system("overlay", "/"), "warning", "mount a volume"),
        (checkup.witness("tmpfs", "/dev/shm"), "ok", "/dev/shm is in memory"),
        (checkup.witness("overlay", "/dev/shm"), "warning", "TOPICS_WITNESS_DIR"),
        (checkup.witness("", "/run/topics"), "warning", "/run/topics is missing"),
        (checkup.disk_space(100 * GIB, 256 * MIB), "ok", "100.0 GiB free"),
        (checkup.disk_space(1 * GIB, 256 * MIB), "warning", "--cap-bytes"),
        (checkup.disk_space(300 * MIB, 256 * MIB), "bad", "TOPICS_WAL_FILE_BYTES"),
        (checkup.open_files(65_536), "ok", "65,536"),
        (checkup.open_files(4096), "warning", "ulimit -n 65536"),
        (checkup.open_files(256), "bad", "LimitNOFILE=65536"),
        (checkup.memory(8 * GIB, 256 * MIB), "ok", "8.0 GiB"),
        (checkup.memory(1 * GIB, 900 * MIB), "warning", "TOPICS_HOT_BYTES to at most 512.0 MiB"),
        (checkup.local_clock(NOW, None, "now"), "ok", "now"),
        (checkup.local_clock(NOW, NOW - 5, "now"), "ok", "now"),
        (checkup.local_clock(NOW, NOW + 60_000, "now"), "warning", "60 s before the newest file"),
        (checkup.local_clock(NOW, NOW + 60_000, "now"), "warning", "runs slower until the clock has caught up"),
        (checkup.local_clock(86_400_000, None, "1970"), "bad", "years behind"),
        (checkup.exposure("127.0.0.1", False), "ok", "without keys"),
        (checkup.exposure("localhost", False), "ok", "without keys"),
        (checkup.exposure("0.0.0.0", True), "ok", "with keys"),
        (checkup.exposure("0.0.0.0", False), "bad", "TOPICS_API_KEYS"),
        (checkup.exposure("::", False), "bad", "TOPICS_API_KEYS"),
        (checkup.certificate(NOW, NOW + 90 * DAY_MS, "c.pem"), "ok", "c.pem is good for 90 days"),
        (checkup.certificate(NOW, NOW + 3 * DAY_MS, "c.pem"), "warning", "renew it"),
        (checkup.certificate(NOW, NOW, "c.pem"), "bad", "c.pem has expired"),
        (checkup.latency(3.0), "ok", "3.0 ms"),
        (checkup.latency(300.0), "warning", "batch writes"),
        (checkup.skew(NOW, NOW - 900), "ok", "the same"),
        (checkup.skew(NOW, NOW - 60_000), "warning", "59 s"),
        (checkup.skew(NOW, NOW + 60_000), "warning", "59 s"),
        (checkup.server_version("0.1.0", "0.1.0"), "ok", "0.1.0"),
        (checkup.server_version("0.1.0", "0.2.0"), "warning", "0.2.0 there, 0.1.0 here"),
        (checkup.transport(True, "example.org", True), "ok", "TLS"),
        (checkup.transport(False, "127.0.0.1", True), "ok", "this machine"),
        (checkup.transport(False, "example.org", True), "warning", "the key and all data"),
        (checkup.loop_lag(3.0, 1.0), "ok", "3 ms"),
        (checkup.loop_lag(300.0, 1.0), "warning", "event loop"),
        (checkup.loop_lag(300.0, 0.5), "warning", "50% of the writes admitted"),
        (checkup.log_health(False, False), "ok", "takes writes"),
        (checkup.log_health(True, False), "bad", "mend the disk"),
        (checkup.log_health(False, True), "warning", "checkpoint failed"),
        (checkup.routers(0, 0), "ok", "0 routers"),
        (checkup.routers(3, 0), "ok", "3 routers"),
        (checkup.routers(3, 1), "warning", "1 of 3 routers held up"),
    ],
)
def test_verdicts(finding: Finding, verdict: str, says: str) -> None:
    assert finding.verdict == Verdict(verdict)
    assert says in f"{finding.found} {finding.advice}"
    assert bool(finding.advice) == (finding.verdict is not Verdict.OK), "who is told of a problem is told what to do"


def test_the_summary_counts() -> None:
    fine, odd, broken = checkup.good("a", "b"), checkup.warning("a", "b", "c"), checkup.bad("a", "b", "c")
    assert checkup.summary([fine, fine]) == "all 2 checks are good"
    assert checkup.summary([fine, odd, broken]) == "1 problem, 1 warning of 3 checks"
    assert checkup.summary([fine, odd]) == "0 problems, 1 warning of 2 checks"
