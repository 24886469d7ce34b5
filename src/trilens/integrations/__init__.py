"""Collections and encoders behind the interfaces of other frameworks: one module per framework."""
