"""Runs the cases of all files, or those whose name has one of the words given."""
import sys

import harness
import values
import steps
import training
import input
import datasets
import documents
import gpus
import flow
import calls
import spread
import faults

sys.exit(harness.main(sys.argv[1:]))
