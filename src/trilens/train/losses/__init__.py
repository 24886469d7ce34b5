"""Training objectives: functions of representations and masks, the same in one process and in several."""
