"""When facts hold: judged pairs, which statement takes whose place from when, and what follows for each fact. Pure."""
