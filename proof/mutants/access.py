"""Mutants of who may do what: names, pages, keys of tenants, and what the audit log shows."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_PAGES = "topics/server/pageorigins.py"
_HEAD = "topics/server/requesthead.py"
_SECURITY = "tests/security/test_pages.py::"

ACCESS = (
    Mutant(
        "host-name-unchecked",
        "a server without keys answers under loopback names only",
        _HEAD,
        "        if options.hosts is not None:\n",
        "        if False:\n",
        (_SECURITY + "test_rebound_page_gets_no_answer_from_any_route",),
    ),
    Mutant(
        "host-in-target-unchecked",
        "the name in an absolute target counts as much as the one in Host",
        _HEAD,
        'options.hosts.check(self.headers.get("host"), authority_in(target))',
        'options.hosts.check(self.headers.get("host"))',
        (_SECURITY + "test_absolute_target_and_missing_host_are_judged_too",),
    ),
    Mutant(
        "foreign-origin-accepted",
        "a page of another origin changes nothing",
        _PAGES,
        "        if not is_own or site in FOREIGN_SITES:\n",
        "        if site in FOREIGN_SITES:\n",
        (_SECURITY + "test_foreign_page_changes_nothing_by_any_route",),
    ),
    Mutant(
        "foreign-site-accepted",
        "a page that names no origin changes nothing either",
        _PAGES,
        "        if not is_own or site in FOREIGN_SITES:\n",
        "        if not is_own:\n",
        (_SECURITY + "test_foreign_page_changes_nothing_by_any_route",),
    ),
    Mutant(
        "read-that-acts-unchecked",
        "a stream that takes jobs is no read",
        "topics/server/dispatch.py",
        "            self._context.pages.check(request.headers)\n",
        "            pass\n",
        (_SECURITY + "test_foreign_page_changes_nothing_by_any_route",),
    ),
    Mutant(
        "statement-not-run-recorded-as-done",
        "what was not carried out is never recorded as done",
        "topics/server/sqlaudit.py",
        "    outcome: str = NOT_BEGUN\n",
        "    outcome: str = DONE\n",
        ("tests/server/routes/test_audit.py::test_statements_behind_a_failed_one_are_not_recorded_as_done",),
    ),
    Mutant(
        "audit-line-unsynced-before-a-deed",
        "the line of a deed is on the disk before it begins",
        "topics/server/auditfile.py",
        "            file.sync()\n        else:\n",
        "            pass\n        else:\n",
        ("tests/server/test_auditfile.py::test_what_was_appended_survives_a_power_loss",),
    ),
    Mutant(
        "producers-shared-by-tenants",
        "tenants share neither producers nor stages",
        "topics/server/tenants.py",
        "        stored = name + self.suffix\n",
        "        stored = name\n",
        ("tests/server/routes/test_stages.py::test_tenants_share_neither_producers_nor_stages",),
    ),
    Mutant(
        "plain-batch-published-again",
        "a batch stored before names were kept apart is not published twice",
        "topics/server/tenants.py",
        "    return producer_id if parts and all(",
        "    return stored if parts and all(",
        ("tests/server/routes/test_stages.py::test_plain_batches_of_before_count_as_the_tenants_own",),
    ),
    Mutant(
        "tenant-names-a-path",
        "a key bound to prefixes names no path of a runner",
        "topics/server/auth.py",
        '    if principal.prefixes:\n        raise Forbidden(\n            f"a key that is bound',
        '    if False:\n        raise Forbidden(\n            f"a key that is bound',
        ("tests/server/routes/test_pipelines.py::test_key_with_prefixes_names_no_place_of_a_runner",),
    ),
    Mutant(
        "location-prefix-is-enough",
        "a runner touches nothing outside its locations",
        "topics/spark/pipeline/locations.py",
        "plain.startswith(f\"{each.rstrip('/')}/\")",
        "plain.startswith(each)",
        ("tests/spark/pipeline/test_locations.py",),
    ),
    Mutant(
        "attempts-under-way-uncounted",
        "many passwords at once get no further than one after the other",
        "topics/server/attempts.py",
        "        if left_ms <= 0 and failures.pending:\n",
        "        if False:\n",
        (
            "tests/server/routes/test_signinattempts.py::test_no_more_passwords_are_compared_at_once_than_one_after_the_other",
        ),
    ),
    Mutant(
        "directory-open-to-others",
        "directories that are made are their owner's",
        "topics/storage/fs.py",
        "os.mkdir(directory, NEW_DIRECTORY_PERMISSIONS)",
        "os.mkdir(directory)",
        ("tests/storage/test_fs.py::test_directories_that_are_made_are_their_owners",),
    ),
)
