"""What must never become a fact of the saved states."""

from __future__ import annotations

# What gold.json calls traps, as words that no stored fact may hold.
TRAPS = {
    "assistant_agent": ["book directly", "hate stairs"],
    "assistant_agent_listmemory": ["metric", "Berlin"],
    "assistant_agent_buffered_context": ["metric", "Berlin"],
    "assistant_agent_multimodal": ["base64", "iVBOR"],
    "team_structured_message": ["{"],
    "roundrobin_groupchat": ["Rust", "FAILED", "locked", "UUIDv7"],
    "selector_groupchat": ["17:00"],
    "swarm": ["Transferred", "transfer"],
    "magentic_one": ["HubSpot", "Odoo"],
    "code_executor_in_team": ["print(", "exitcode"],
    "graphflow": ["more emoji"],
    "roundrobin_with_memory": ["is allergic"],
    "memory_as_user_message_teachability": ["night shifts"],
    "memory_in_prompt_tutorial_pattern": ["concise", "insurance"],
    "adversarial": ["IBAN", "admin", "sk-test", "4111", "vegan", "Mondays", "IGNORE"],
    "legacy_v0.2.40_chat_history": ["deductible", "A. Reyes", "TERMINATE"],
    "legacy_ag2_0.14.0_chat_result": ["deductible", "A. Reyes", "TERMINATE"],
}
