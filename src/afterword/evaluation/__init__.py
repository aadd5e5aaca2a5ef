"""How good a pipeline is: scenarios with known facts go through it, and what it then holds is scored."""
