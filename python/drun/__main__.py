"""python -m drun"""
from ._command import main

main()
