"""Losses: functions of head outputs and masks that give the same value in one process and in several."""
