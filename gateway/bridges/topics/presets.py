"""Topics and names of programs whose messages are read without further configuration."""

from dataclasses import dataclass, field
from typing import Any

from gateway.bridges.readings.reading_map import ReadingMap, reading_map


@dataclass(frozen=True, slots=True)
class Preset:
    """Topic patterns, and a map as the configuration would have it.

    `node` and `instance` are made of a message's fields where the topic lacks them. `within` is the
    path of the object that has the readings, `time` that of their time.
    """

    topics: tuple[str, ...]
    map: dict[str, Any] = field(default_factory=dict)
    node: str = ""
    instance: str = ""
    within: str = ""
    time: str = ""
    by_radio: bool = False
    """Whether it also receives the devices of other people."""

    def reading_map(self, own: ReadingMap) -> ReadingMap:
        """Return a configured map with the preset's names beside its own."""
        return ReadingMap({**reading_map(self.map).fields, **own.fields}, own.strict)


def _of(quantity: str, unit: str, **others: object) -> dict[str, object]:
    return {"quantity": quantity, "unit": unit, **others}


def _phases() -> dict[str, Any]:
    """Return the names of Shelly's three-phase meters, phase a to c and the sum of all."""
    names: dict[str, Any] = {"n_current": _of("current", "A", instance="n")}
    for phase in "abc":
        names |= {
            f"{phase}_voltage": _of("voltage", "V", instance=phase),
            f"{phase}_current": _of("current", "A", instance=phase),
            f"{phase}_act_power": _of("power", "W", instance=phase),
            f"{phase}_aprt_power": _of("apparent_power", "VA", instance=phase),
            f"{phase}_pf": _of("power_factor", "%", instance=phase, scale=100),
            f"{phase}_freq": _of("frequency", "Hz", instance=phase),
            f"{phase}_total_act_energy": _of("energy", "Wh", instance=phase),
            f"{phase}_total_act_ret_energy": _of("energy_returned", "Wh", instance=phase),
        }
    return names | {
        "total_current": _of("current", "A"),
        "total_act_power": _of("power", "W"),
        "total_aprt_power": _of("apparent_power", "VA"),
        "total_act": _of("energy", "Wh"),
        "total_act_ret": _of("energy_returned", "Wh"),
    }


VALUES_OF_EMETERS = ("power", "reactive_power", "pf", "current", "voltage")
"""Topics of a meter of Shelly's first generation, beside its stored totals in Wh. Its `energy`
counts watt-minutes, and would be a second series of the same energy."""

NO_VALUES_OF_SHELLY = (
    *("source", "calibration", "mac", "time", "unixtime", "restart_required", "last_updated_ts"),
    *("ram_size", "ram_free", "ram_min_free", "fs_size", "fs_free", "packet_id", "reset_reason"),
    *("cfg_rev", "kvs_rev", "schedule_rev", "webhook_rev", "btrelay_rev", "sta_ip", "ssid"),
)
"""Names that describe the device, its program and its network."""

PRESETS = {
    "zigbee2mqtt": Preset(
        ("zigbee2mqtt/{node}",),
        {
            "temperature": _of("temperature", "°C"),
            "device_temperature": _of("device_temperature", "°C"),
            "pressure": _of("pressure", "hPa"),
            "battery": _of("battery", "%"),
            "soil_moisture": _of("moisture", "%"),
            "local_temperature": _of("temperature", "°C"),
            **{
                name: _of(f"temperature_{name.removesuffix('_temperature')}", "°C")
                for name in ("soil_temperature", "external_temperature")
            },
            "current_heating_setpoint": _of("target_temperature", "°C"),
            "occupied_heating_setpoint": _of("target_temperature", "°C"),
            **{name: _of(name, "%") for name in ("pi_heating_demand", "position")},
            "power": _of("power", "W"),
            "power_reactive": _of("reactive_power", "var"),
            "power_apparent": _of("apparent_power", "VA"),
            "ac_frequency": _of("frequency", "Hz"),
            "current": _of("current", "A"),
            "energy": _of("energy", "kWh"),
            "produced_energy": _of("energy_returned", "kWh"),
            "illuminance_lux": _of("illuminance", "lx"),
            "contact": {"quantity": "opening", "invert": True},
            "linkquality": "link_quality",
            **{f"update.{name}": False for name in ("installed_version", "latest_version")},
            "update.state": False,
            "update_available": False,
            "last_seen": False,
        },
    ),
    "tasmota": Preset(
        ("tele/{node}/SENSOR",),
        {
            "ENERGY.TotalStartTime": False,
            "ENERGY.Total": _of("energy", "kWh"),
            "ENERGY.ExportActive": _of("energy_returned", "kWh"),
            "ENERGY.Period": False,
            "ENERGY.Today": False,
            "ENERGY.Yesterday": False,
            "ENERGY.Power": _of("power", "W"),
            "ENERGY.Voltage": _of("voltage", "V"),
            "ENERGY.Current": _of("current", "A"),
            "ENERGY.Frequency": _of("frequency", "Hz"),
            "ENERGY.Factor": {"quantity": "power_factor", "scale": 100, "unit": "%"},
            "ENERGY.ApparentPower": _of("apparent_power", "VA"),
            "ENERGY.ReactivePower": _of("reactive_power", "var"),
            "DewPoint": "temperature_dew_point",
            "SeaPressure": "pressure_sea_level",
            "Distance": _of("distance", "cm"),
            "Battery": _of("battery", "%"),
            "RSSI": _of("signal_strength", "dBm"),
            "Model": False,
            "mac": False,
        },
    ),
    "shelly": Preset(
        (
            "shellies/{node}/sensor/{quantity}",
            "shellies/{node}/relay/{channel}/{quantity}",
            "shellies/{node}/light/{channel}/{quantity}",
            "shellies/{node}/roller/{channel}/{quantity}",
            *(
                f"shellies/{{node}}/emeter/{{channel}}/{name}"
                for name in (*VALUES_OF_EMETERS, "total", "total_returned")
            ),
            "shellies/{node}/relay/{channel}",
            "shellies/{node}/temperature",
            "shellies/{node}/ext_temperature/{channel}",
            "shellies/{node}/ext_humidity/{channel}",
            "{node}/status/{channel}",
        ),
        {
            "tC": _of("temperature", "°C"),
            "tF": False,
            "temperature": _of("temperature", "°C"),
            "rh": _of("humidity", "%"),
            "ext_temperature": _of("temperature", "°C"),
            "ext_humidity": _of("humidity", "%"),
            "battery": _of("battery", "%"),
            "battery.V": _of("voltage", "V"),
            "battery.percent": _of("battery", "%"),
            "power": _of("power", "W"),
            "apower": _of("power", "W"),
            "voltage": _of("voltage", "V"),
            "current": _of("current", "A"),
            "freq": _of("frequency", "Hz"),
            "aenergy.total": _of("energy", "Wh"),
            "aenergy.minute_ts": False,
            "minute_ts": False,
            "energy": {"quantity": "energy", "unit": "kWh", "scale": 1 / 60_000},
            "returned_energy": {"quantity": "energy_returned", "unit": "kWh", "scale": 1 / 60_000},
            "reactive_power": _of("reactive_power", "var"),
            "pf": _of("power_factor", "%", scale=100),
            "total": _of("energy", "Wh"),
            "total_returned": _of("energy_returned", "Wh"),
            "counts.total": "count",
            "ret_aenergy.total": _of("energy_returned", "Wh"),
            "ret_aenergy.minute_ts": False,
            "act_power": _of("power", "W"),
            "aprt_power": _of("apparent_power", "VA"),
            "total_act_energy": _of("energy", "Wh"),
            "total_act_ret_energy": _of("energy_returned", "Wh"),
            "relay": "output",
            "aprtpower": _of("apparent_power", "VA"),
            "rssi": _of("signal_strength", "dBm"),
            "brightness": _of("brightness", "%"),
            "current_pos": _of("position", "%"),
            "pos": _of("position", "%"),
            "percent": _of("percent", "%"),
            "uptime": _of("duration", "s", instance="uptime"),
            **_phases(),
            **dict.fromkeys(NO_VALUES_OF_SHELLY, False),
        },
    ),
    "chirpstack": Preset(
        (
            "application/+/device/{node}/event/up",
            "application/+/device/{node}/event/status",
        ),
        {
            "batteryLevel": _of("battery", "%"),
            "batteryLevelUnavailable": False,
            "externalPowerSource": "external_power",
            "margin": _of("link_margin", "dB"),
        },
        within="object",
        time="time",
    ),
    "rtl_433": Preset(
        ("rtl_433/+/events", "home/+/RTL_433toMQTT/#"),
        {
            "temperature_C": _of("temperature", "°C"),
            **{
                f"temperature_{number}_C": _of("temperature", "°C", instance=f"{number}")
                for number in range(1, 9)
            },
            **{
                f"power{number}_W": _of("power", "W", instance=f"{number}")
                for number in range(1, 4)
            },
            "temperature_F": _of("temperature", "°F"),
            "pressure_hPa": _of("pressure", "hPa"),
            "pressure_kPa": _of("pressure", "kPa"),
            "pressure_PSI": _of("pressure", "psi"),
            "rain_mm": _of("precipitation", "mm"),
            "rain_in": _of("precipitation", "in"),
            "rain_rate_mm_h": _of("precipitation_intensity", "mm/h"),
            "wind_avg_m_s": _of("wind_speed", "m/s"),
            "wind_avg_km_h": _of("wind_speed", "km/h"),
            "wind_max_m_s": _of("wind_speed", "m/s", instance="gust"),
            "wind_max_km_h": _of("wind_speed", "km/h", instance="gust"),
            "wind_avg_mi_h": _of("wind_speed", "mph"),
            "wind_max_mi_h": _of("wind_speed", "mph", instance="gust"),
            "storm_dist_km": _of("distance", "km"),
            "strike_count": "count",
            "moisture": _of("moisture", "%"),
            "wind_dir_deg": _of("wind_direction", "°"),
            "light_lux": _of("illuminance", "lx"),
            "lux": _of("illuminance", "lx"),
            "uv": "uv_index",
            "uvi": "uv_index",
            "battery_ok": _of("battery", "%", scale=100),
            "battery_mV": _of("voltage", "mV"),
            "supercap_V": _of("voltage", "V", instance="supercap"),
            "depth_cm": _of("distance", "cm"),
            "power_W": _of("power", "W"),
            "energy_kWh": _of("energy", "kWh"),
            "volume_m3": _of("volume", "m³"),
            "rssi": _of("signal_strength", "dB"),
            **dict.fromkeys(
                (
                    *("snr", "noise", "freq", "freq1", "freq2", "mod", "mic", "subtype", "type"),
                    *("protocol", "flags", "data", "firmware", "interval", "learn", "test"),
                    *("startup", "sensor_type", "ert_type", "rain_start", "binding_countdown"),
                    "duration",
                ),
                False,
            ),
        },
        node="{model}-{channel}-{id}",
        by_radio=True,
    ),
    "openmqttgateway": Preset(
        (
            "home/+/BTtoMQTT/+",
            "home/+/BTtoMQTT",
        ),
        {
            "tempc": _of("temperature", "°C"),
            "tempf": False,
            "tempc1": _of("temperature", "°C", instance="1"),
            "tempc2": _of("temperature", "°C", instance="2"),
            "tempc3": _of("temperature", "°C", instance="3"),
            "tempc4": _of("temperature", "°C", instance="4"),
            **{f"tempf{number}": False for number in range(1, 5)},
            "hum": _of("humidity", "%"),
            "batt": _of("battery", "%"),
            "volt": _of("voltage", "V"),
            "lux": _of("illuminance", "lx"),
            "moi": _of("moisture", "%"),
            "fer": _of("conductivity", "μS/cm"),
            "pres": _of("pressure", "hPa"),
            "open": "opening",
            "co2": _of("carbon_dioxide", "ppm"),
            "rssi": _of("signal_strength", "dBm"),
            **dict.fromkeys(
                (
                    *("brand", "model", "model_id", "type", "mfr", "mfid", "servicedata", "track"),
                    *("manufacturerdata", "servicedatauuid", "mac_type", "adv_type", "txpower"),
                    *("distance", "cidc", "acts", "cont", "encr", "tem", "packet", "seq", "tx"),
                    *("uuid", "major", "minor"),
                ),
                False,
            ),
        },
        node="{id}",
        by_radio=True,
    ),
    "esphome": Preset(
        ("{node}/sensor/{quantity}/state", "{node}/binary_sensor/{quantity}/state"),
    ),
}
"""Shelly's first generation counts watt-minutes. zigbee2mqtt's `voltage` is in volts for plugs and
in millivolts for batteries, so no unit is given here."""

NO_PRESET = Preset(())
