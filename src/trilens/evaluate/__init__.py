"""How good the answers are: runs over judged collections, measured with ir-measures."""
