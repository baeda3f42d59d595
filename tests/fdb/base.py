"""The schema and the key that the tests of named behaviours start from."""

SCHEMA = """
param: Param; step: Step; date: Date; levelist: Double; expver: Expver; time: Time; number: Integer;
[ class, expver, stream, date, time, domain?g
    [ type, levtype
        [ step, levelist?, number?, param ]]]
"""

KEY = {
    "class": "rd",
    "expver": "xxxx",
    "stream": "oper",
    "date": "20250101",
    "time": "1200",
    "domain": "g",
    "type": "fc",
    "levtype": "pl",
    "step": "0",
    "levelist": "500",
    "param": "130",
}
