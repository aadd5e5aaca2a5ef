"""What an agent is told: ranking, selection within a budget, the text of the block. Pure."""
