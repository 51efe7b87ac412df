"""The machine in virtual time: networks, faults and reports."""
