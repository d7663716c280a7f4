"""Messages of other programs, and the values of the series that their preset makes of them."""

SWITCH = {"id": 0, "source": "init", "output": True, "apower": 11.5, "voltage": 230.1}
EM = {"id": 0, "a_voltage": 230.1, "b_voltage": 231.0, "a_act_power": 10.0, "total_act_power": 21.5}
ACURITE = {
    "time": "2026-11-20 10:00:00",
    "model": "Acurite-Tower",
    "id": 1234,
    "channel": "A",
    "battery_ok": 1,
    "temperature_C": 20.5,
    "humidity": 50,
    "mic": "CHECKSUM",
}
LYWSD = {
    "id": "A4:C1:38:8C:34:B7",
    "name": "ATC_8C34B7",
    "rssi": -60,
    "brand": "Xiaomi",
    "tempc": 25.2,
    "tempf": 77.36,
    "hum": 52,
    "batt": 100,
    "volt": 3.0,
}

UPLINK = {
    "deduplicationId": "3ac7e3c4-4401-4b8d-9386-a5c902f9202d",
    "time": "2026-11-20T10:00:00.775023+00:00",
    "deviceInfo": {"deviceName": "cellar", "devEui": "0101010101010101"},
    "fCnt": 4,
    "rxInfo": [{"gatewayId": "0016c001f153a14c", "rssi": -48, "snr": 9}],
    "object": {"temperature": 6.5, "humidity": 71, "door": {"open": True}},
}
BATTERY = {"time": UPLINK["time"], "margin": 10, "batteryLevel": 98.4, "fCnt": 5}

MESSAGES: list[tuple[str, str, object, dict[str, object]]] = [
    (
        "shelly",
        "plug/status/switch:0",
        SWITCH
        | {"aenergy": {"total": 100.5, "minute_ts": 1}, "temperature": {"tC": 40, "tF": 104}},
        {
            "plug/output": True,
            "plug/power": 11.5,
            "plug/voltage": 230.1,
            "plug/energy": 100.5,
            "plug/temperature": 40,
        },
    ),
    (
        "shelly",
        "plug/status/switch:3",
        SWITCH | {"id": 3, "aenergy": {"total": 400}},
        {
            "plug/output/3": True,
            "plug/power/3": 11.5,
            "plug/voltage/3": 230.1,
            "plug/energy/3": 400,
        },
    ),
    (
        "shelly",
        "em/status/em:0",
        EM,
        {"em/voltage/a": 230.1, "em/voltage/b": 231.0, "em/power/a": 10.0, "em/power": 21.5},
    ),
    ("shelly", "shellies/old/relay/1/power", 60, {"old/power/1": 60}),
    ("shelly", "shellies/old/emeter/0/voltage", 230, {"old/voltage": 230}),
    ("shelly", "shellies/old/emeter/1/total", 1234.5, {"old/energy/1": 1234.5}),
    ("shelly", "c/status/cover:0", {"current_pos": 40}, {"c/position": 40}),
    (
        "tasmota",
        "tele/air/SENSOR",
        {"SHT3X-0x44": {"Humidity": 40}, "SCD40": {"CarbonDioxide": 500}},
        {"air/humidity/SHT3X-0x44": 40, "air/carbon_dioxide": 500},
    ),
    (
        "rtl_433",
        "home/omg/RTL_433toMQTT/WS/7",
        {"model": "WS", "id": 7, "wind_avg_mi_h": 3, "duration": 9},
        {"WS-7/wind_speed": 3},
    ),
    ("shelly", "x/status/temperature:100", {"id": 100, "tC": 5.5}, {"x/temperature/100": 5.5}),
    (
        "tasmota",
        "tele/w/SENSOR",
        {
            "Time": "2026-11-20T10:00:00",
            "SI7021-14": {"Temperature": 20.5, "Humidity": 40},
            "SI7021-15": {"Temperature": 21.5},
            "TempUnit": "C",
        },
        {
            "w/temperature/SI7021-14": 20.5,
            "w/humidity/SI7021-14": 40,
            "w/temperature/SI7021-15": 21.5,
        },
    ),
    (
        "rtl_433",
        "rtl_433/pi/events",
        ACURITE,
        {
            "Acurite-Tower-A-1234/battery": 100,
            "Acurite-Tower-A-1234/temperature": 20.5,
            "Acurite-Tower-A-1234/humidity": 50,
        },
    ),
    (
        "openmqttgateway",
        "home/OpenMQTTGateway/BTtoMQTT/A4C1388C34B7",
        LYWSD,
        {
            "a4c1388c34b7/signal_strength": -60,
            "a4c1388c34b7/temperature": 25.2,
            "a4c1388c34b7/humidity": 52,
            "a4c1388c34b7/battery": 100,
            "a4c1388c34b7/voltage": 3.0,
        },
    ),
    ("shelly", "shellies/s1/ext_temperature/0", 21.5, {"s1/temperature": 21.5}),
    ("shelly", "shellies/s1/ext_temperature/2", 22.5, {"s1/temperature/2": 22.5}),
    (
        "tasmota",
        "tele/em/SENSOR",
        {"ENERGY": {"Total": [1.5, 2.5], "Today": [1, 2], "Factor": [0.9, 0.8], "Period": [1, 2]}},
        {"em/energy/1": 1.5, "em/energy/2": 2.5, "em/power_factor/1": 90, "em/power_factor/2": 80},
    ),
    (
        "zigbee2mqtt",
        "zigbee2mqtt/two",
        {"power_left": 3, "temperature_l1": 20, "action": ""},
        {"two/power_left": 3, "two/temperature_l1": 20},
    ),
    (
        "chirpstack",
        "application/7/device/0101010101010101/event/up",
        UPLINK,
        {
            "0101010101010101/temperature": 6.5,
            "0101010101010101/humidity": 71,
            "0101010101010101/door.open": True,
        },
    ),
    (
        "chirpstack",
        "application/7/device/0101010101010101/event/status",
        BATTERY,
        {"0101010101010101/battery": 98.4, "0101010101010101/link_margin": 10},
    ),
    ("zigbee2mqtt", "zigbee2mqtt/remote", {"action": "single"}, {"remote/action": "single"}),
]
