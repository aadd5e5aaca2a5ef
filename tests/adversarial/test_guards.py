"""Each guard is needed: without it, a test of its theme fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

GUARDS = [
    ("extractors.grounding:_check_modality:none", "unit/test_grounding.py"),
    ("extractors.grounding:_check_harmless:none", "adversarial/test_removals.py"),
    ("extractors.grounding:_check_support:none", "adversarial/test_quotes.py"),
    ("extractors.grounding:_check_own_words:none", "adversarial/test_pasted.py"),
    ("extractors.grounding:_check_days:none", "adversarial/test_quotes.py"),
    ("extractors.grounding:_former_name:none", "unit/test_grounding.py"),
    ("extractors.quote_support:accepts:true", "adversarial/test_quotes.py"),
    ("extractors.quote_support:takes_back:true", "adversarial/test_quotes.py"),
    ("extractors.quote_support:first_repeated_quote:none", "adversarial/test_repeated_words.py"),
    ("extractors.candidates:mask_candidate:argument", "integration/test_privacy.py"),
    ("pipeline.window_reader:limited_reading:argument", "adversarial/test_limits.py"),
    ("pipeline.window_reader:_withhold_forgotten:argument", "contract/test_normal_forms.py"),
    ("pipeline.sources.folders:_check_allowed:none", "unit/test_session_folders.py"),
    ("facts.removals:UnnamedRemovalCounts.must_wait:false", "adversarial/test_removals.py"),
    ("facts.removals:_is_fact_named:true", "adversarial/test_removals.py"),
    ("facts.removals:_is_fact_named_as_ended:true", "adversarial/test_removals.py"),
    ("facts.removals:is_about_health:false", "adversarial/test_removals.py"),
    ("facts.removals:says_that_something_ends:true", "adversarial/test_lying_model.py"),
    ("extractors.plain_statements:rests_on_plain_statement:true", "adversarial/test_lying_model.py"),
    ("privacy.foreign.announcements:find_announced_text:empty", "adversarial/test_lying_model.py"),
    ("privacy.foreign.documents:find_posts_and_scripts:empty", "adversarial/test_lying_model.py"),
    ("cli.terminal:terminal_safe_text:argument", "adversarial/test_terminal.py"),
    ("facts.subjects:_may_join:true", "unit/test_subjects.py"),
    ("facts.safety:must_never_be_missed:false", "adversarial/test_repeated_words.py"),
    ("agents.person_words:LiveConversation.reason_not_to_store:none", "adversarial/test_agent_tools.py"),
    ("recall.said_index:commands_assistant:false", "adversarial/test_served_text.py"),
    ("recall.block:defuse_tags:argument", "integration/test_block_wording.py"),
    ("store.forgetting.row_blanking:RowBlanking.blank_spans_sparing_people:none", "contract/test_forgotten_copies.py"),
    ("store.forgetting.served_copies:sessions_elsewhere_with_blocks:empty", "contract/test_forgotten_copies.py"),
    ("store.forgetting.row_blanking:RowBlanking._change_turns:none", "contract/test_forgotten_copies.py"),
    ("store.forgetting.row_blanking:_unchanged_ids:empty", "contract/test_forgetting.py"),
    ("store.access.keys:ApiKey.opens:true", "adversarial/test_service_attacks.py"),
    ("store.access.keys:has_unrevoked_key_of_scope:false", "adversarial/test_moved_memories.py"),
    ("server.pages.visit:sender_key_id:none", "adversarial/test_service_attacks.py"),
    ("server.background:_WorkThread.is_responsive:true", "integration/test_work_threads.py"),
    ("server.access:TemporaryFile:named_file", "integration/test_temporary_files.py"),
    ("cli.transfer_commands:TemporaryFile:named_file", "integration/test_temporary_files.py"),
    ("pipeline.sources.other_libraries:_check_single_owner:none", "integration/test_transfer_cli.py"),
    ("extractors.readers.limits:_opened_below:second", "unit/test_session_folders.py"),
    ("extractors.readers.utterances:People.is_user:true", "unit/test_proxies.py"),
    ("pipeline.background.leases:_failures_by_kind:argument", "contract/test_jobs.py"),
    ("store.database.clock:clamp_to_present:second", "contract/test_transfer.py"),
    ("store.transfer.export_lines:_masked_assertion:argument", "adversarial/test_secrets_and_record.py"),
]


@pytest.mark.soak
@pytest.mark.parametrize(("guard", "theme"), GUARDS, ids=[guard.rpartition(":")[0] for guard, _ in GUARDS])
def test_without_a_guard_a_test_of_its_theme_fails(guard: str, theme: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "weakening", "-n", "0", "-x", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "AFTERWORD_TEST_WEAKENED": f"afterword.{guard}",
        "PYTHONPATH": os.pathsep.join([str(TESTS / "support"), os.environ.get("PYTHONPATH", "")]),
    }
    ended = subprocess.run(
        [*command, str(TESTS / theme)], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout[-2000:] + ended.stderr[-2000:]
