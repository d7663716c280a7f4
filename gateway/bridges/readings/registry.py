"""The only declaration of the quantities and units of readings, in Home Assistant's words.

Names, units and classes are those that Home Assistant publishes for sensors and binary sensors
(developers.home-assistant.io/docs/core/entity/sensor, …/binary-sensor, 2025).

A quantity has the name of its device class if there is one, so nothing needs translating. Other
names are aliases. A quantity that is not listed is published under its own name.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache


class Kind(Enum):
    """The kind of a quantity's values."""

    SAMPLE = "sample"
    """A number at a point in time."""
    TOTAL = "total"
    """A meter's total, which only rises."""
    STATE = "state"
    """True or false until the next change."""
    EVENT = "event"
    """An event without a duration."""


STATE_CLASSES = {Kind.SAMPLE: "measurement", Kind.TOTAL: "total_increasing"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity: its units, the usual one first, and its class in Home Assistant.

    `device_class` is empty where it has none. `low` and `high` are the limits of plausible values,
    `jump` the highest plausible rise of a total between two readings, in the usual unit.
    """

    name: str
    units: tuple[str, ...] = ()
    device_class: str = ""
    kind: Kind = Kind.SAMPLE
    state_class: str = ""
    low: float = -math.inf
    high: float = math.inf
    jump: float = math.inf

    @property
    def binary(self) -> bool:
        """Whether it is true or false."""
        return self.kind is Kind.STATE


MICROGRAMS = "μg/m³"  # with the Greek letter, as Home Assistant spells it since 2025
ENERGIES = "kWh Wh MWh GWh TWh mWh J kJ MJ GJ cal kcal Mcal Gcal"
PRESSURES = "hPa Pa kPa bar cbar mbar mmHg inHg psi mPa inH₂O"
GASES = f"{MICROGRAMS} mg/m³ ppb ppm"

SENSORS = f"""
    temperature °C °F K
    humidity %
    absolute_humidity g/m³ mg/m³
    moisture %
    pressure {PRESSURES}
    atmospheric_pressure {PRESSURES}
    voltage V mV μV kV MV
    current A mA μA
    power W mW kW MW GW TW
    apparent_power VA mVA kVA
    reactive_power var mvar kvar
    power_factor %
    energy_storage {ENERGIES}
    frequency Hz mHz kHz MHz GHz
    illuminance lx
    irradiance W/m² BTU/(h⋅ft²)
    carbon_dioxide ppm
    carbon_monoxide ppm ppb {MICROGRAMS} mg/m³
    pm1 {MICROGRAMS}
    pm25 {MICROGRAMS}
    pm4 {MICROGRAMS}
    pm10 {MICROGRAMS}
    volatile_organic_compounds {MICROGRAMS} mg/m³
    volatile_organic_compounds_parts ppb ppm
    nitrogen_dioxide {GASES}
    nitrogen_monoxide {GASES}
    nitrous_oxide {GASES}
    ozone {GASES}
    sulphur_dioxide {GASES}
    aqi
    distance mm cm m km in ft yd mi
    volume_storage L mL m³ ft³ CCF gal MCF
    volume_flow_rate L/min m³/h m³/min m³/s L/h L/s mL/s ft³/min gal/min gal/h gal/d
    weight kg g mg μg t lb oz st
    speed m/s km/h kn mph ft/s in/d in/h in/s mm/d mm/h mm/s m/min
    wind_speed m/s km/h kn mph ft/s Beaufort
    precipitation_intensity mm/h mm/d in/h in/d
    conductivity μS/cm mS/cm S/cm
    ph
    battery %
    signal_strength dBm dB
    sound_pressure dB dBA
    duration s ms μs min h d
    data_size B kB MB GB KiB MiB GiB bit kbit Mbit
    area m² cm² km² mm² in² ft² yd² mi² ac ha
    temperature_delta °C °F K
    energy_distance kWh/100km Wh/km mi/kWh km/kWh
    blood_glucose_concentration mg/dL mmol/L
    data_rate bit/s kbit/s Mbit/s B/s kB/s MB/s KiB/s MiB/s
"""

METERS = f"""
    reactive_energy varh kvarh
    energy {ENERGIES}
    volume L mL m³ ft³ CCF gal MCF
    water L m³ ft³ CCF gal MCF
    gas m³ L ft³ CCF MCF
    precipitation mm cm in
"""

WITHOUT_CLASS = """
    level % mm cm m
    acceleration m/s²
    count
    latitude °
    longitude °
    altitude m
    rotation °
    wind_angle °
    heading °
    course °
    uv_index
"""

EVENTS = "button dimmer event action"
"""An event, as text."""

LIMITS = """
    temperature -100 1500
    temperature_delta -1000 1000
    humidity 0 100
    moisture 0 100
    battery 0 100
    power_factor -100 100
    absolute_humidity 0 600
    atmospheric_pressure 300 1100
    pressure -1000 1e7
    voltage -1e6 1e6
    current -1e5 1e5
    power -1e9 1e9
    apparent_power -1e9 1e9
    reactive_power -1e9 1e9
    frequency 0 1e10
    illuminance 0 200000
    irradiance -100 2000
    carbon_dioxide 0 100000
    carbon_monoxide 0 100000
    pm1 0 10000
    pm25 0 10000
    pm4 0 10000
    pm10 0 10000
    volatile_organic_compounds 0 1e6
    volatile_organic_compounds_parts 0 1e6
    aqi 0 1000
    ph 0 14
    conductivity 0 1e6
    wind_speed 0 120
    wind_direction 0 360
    precipitation_intensity 0 1000
    latitude -90 90
    longitude -180 180
    altitude -12000 100000
    heading 0 360
    course 0 360
    uv_index 0 30
    signal_strength -200 50
    sound_pressure 0 200
    distance -1e6 1e12
    level -1e6 1e6
    weight -1e6 1e9
    duration 0 1e12
    energy 0 1e9 10000
    reactive_energy 0 1e12 1e7
    energy_storage 0 1e9
    volume 0 1e12 1e6
    water 0 1e12 1e6
    gas 0 1e9 1e4
    precipitation 0 1e6 500
"""
"""Limits of plausible values, and for totals the highest rise between two readings, in the usual
unit. They are wide: a marked value is wrong, not rare."""

BINARY = """
    motion occupancy presence moving opening door window garage_door lock smoke light sound
    vibration tamper problem plug running safety connectivity battery_charging cold heat
"""

BINARY_OF_CLASS = {
    "battery_low": "battery",
    "moisture_detected": "moisture",
    "gas_detected": "gas",
    "carbon_monoxide_detected": "carbon_monoxide",
    "power_on": "power",
}
"""True or false quantities whose class has the name of a numeric one."""


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def _of(table: str, kind: Kind, *, has_class: bool = True) -> list[Quantity]:
    state_class = STATE_CLASSES[kind]
    return [
        Quantity(name, tuple(units), name if has_class else "", kind, state_class)
        for name, *units in _rows(table)
    ]


def _binary(name: str, device_class: str) -> Quantity:
    return Quantity(name, device_class=device_class, kind=Kind.STATE)


def _limited(quantities: Iterable[Quantity]) -> Iterable[Quantity]:
    limits = {name: [float(each) for each in numbers] for name, *numbers in _rows(LIMITS)}
    for each in quantities:
        low, high, *jump = limits.get(each.name, (-math.inf, math.inf))
        yield replace(each, low=low, high=high, jump=jump[0] if jump else math.inf)


def _quantities() -> dict[str, Quantity]:
    every = [
        *_of(SENSORS, Kind.SAMPLE),
        *_of(METERS, Kind.TOTAL),
        *_of(WITHOUT_CLASS, Kind.SAMPLE, has_class=False),
        Quantity("wind_direction", ("°",), "wind_direction", state_class="measurement_angle"),
        Quantity("energy_net", tuple(ENERGIES.split()), "energy", state_class="total"),
        *(Quantity(name, device_class=name, kind=Kind.EVENT) for name in EVENTS.split()),
        *(_binary(name, name) for name in BINARY.split()),
        *(_binary(name, device_class) for name, device_class in BINARY_OF_CLASS.items()),
    ]
    return {each.name: each for each in _limited(every)}


QUANTITIES = _quantities()


def _names(table: str) -> dict[str, str]:
    """Return each further word of a line with the line's first."""
    return {other: name for name, *others in _rows(table) for other in others}


ALIASES = _names("""
    temperature temp tmp
    humidity hum rh humid relative_humidity
    pressure press pres baro barometer
    voltage volt volts vcc vbat battery_voltage
    current amp amps ampere amperes
    power watt watts
    energy kwh
    battery bat batt battery_level soc
    illuminance lux lx illum
    carbon_dioxide co2 eco2
    carbon_monoxide co
    pm25 pm2_5 pm2.5 pm02 particulates
    pm1 pm1_0 pm1.0
    pm10 pm10_0 pm100
    volatile_organic_compounds_parts tvoc voc
    distance dist range
    moisture soil soil_moisture
    moisture_detected water_leak leak
    signal_strength rssi
    precipitation rain rainfall
    wind_speed wind
    precipitation_intensity rain_rate rainrate
    wind_direction direction
    volume_flow_rate flow
    weight mass
    ph acidity
    opening contact
    frequency freq hz
    conductivity ec
    motion pir
    latitude lat
    longitude lon lng
    altitude alt elevation
    duration uptime
""")
"""Names that boards print, and those of earlier versions. No single letter is a quantity."""

NAMED_UNITS = {
    **dict.fromkeys(("volt", "volts"), "V"),
    **dict.fromkeys(("amp", "amps", "ampere", "amperes"), "A"),
    **dict.fromkeys(("watt", "watts"), "W"),
    "kwh": "kWh",
    "hz": "Hz",
}
"""Aliases that are also a unit."""

OWN_UNITS = {
    "humidity": "%",
    "carbon_dioxide": "ppm",
    "illuminance": "lx",
    **dict.fromkeys(("pm1", "pm25", "pm4", "pm10"), MICROGRAMS),
    "latitude": "°",
    "longitude": "°",
}
"""Quantities with only one unit, so that their name implies it."""

UNIT_ALIASES = _names("""
    °C C degC ℃ celsius Celsius
    °F F degF ℉ fahrenheit Fahrenheit
    K kelvin Kelvin
    % %RH %rh RH percent pct
    lx lux lm/m²
    L l liter litre
    mL ml
    L/min l/min lpm
    L/h l/h
    m³ m3
    m³/h m3/h
    μg/m³ µg/m³ ug/m3 µg/m3 μg/m3
    μS/cm µS/cm uS/cm
    m/s² m/s2 m/s^2
    μV µV uV
    μA µA uA
    ° deg degree degrees
    km/h kmh kph km_h
    mph mi/h mi_h
    V volt
    W watt
    A amp amps ampere
    W/m² W/m2
""")


def _factors(table: str) -> dict[str, tuple[float, float]]:
    """Return the units of a table with their factor and offset."""
    entries = [each.split() for line in table.strip().splitlines() for each in line.split(" + ")]
    return {unit: (float(factor), float((*added, "0")[0])) for unit, factor, *added in entries}


FACTORS = _factors(f"""
    °C 1 + °F {5 / 9} {-160 / 9} + K 1 -273.15
    % 1 + ° 1 + ppm 1 + lx 1 + dBm 1 + dB 1 + W/m² 1
    V 1 + mV 1e-3 + μV 1e-6 + kV 1e3 + MV 1e6
    A 1 + mA 1e-3 + μA 1e-6
    W 1 + mW 1e-3 + kW 1e3 + MW 1e6 + GW 1e9
    VA 1 + mVA 1e-3 + kVA 1e3
    var 1 + mvar 1e-3 + kvar 1e3 + varh 1 + kvarh 1e3
    Wh 1 + kWh 1e3 + MWh 1e6 + GWh 1e9 + J {1 / 3600} + kJ {1 / 3.6} + MJ {1e3 / 3.6}
    Pa 1 + hPa 100 + kPa 1e3 + bar 1e5 + mbar 100 + psi 6894.757 + inHg 3386.389 + mmHg 133.3224
    Hz 1 + kHz 1e3 + MHz 1e6
    mm 1e-3 + cm 1e-2 + m 1 + km 1e3 + in 0.0254 + ft 0.3048
    mL 1e-3 + L 1 + m³ 1e3 + gal 3.785412
    mg 1e-3 + g 1 + kg 1e3 + t 1e6 + lb 453.5924 + oz 28.34952
    m/s 1 + km/h {1 / 3.6} + kn {1852 / 3600} + mph 0.44704
    ms 1e-3 + s 1 + min 60 + h 3600 + d 86400
    {MICROGRAMS} 1 + mg/m³ 1e3
    μS/cm 1 + mS/cm 1e3 + S/cm 1e6
    mm/h 1 + mm/d {1 / 24} + in/h 25.4
""")
"""Factor and offset that convert a unit to the common unit of its quantity."""

NO_UNITS = {"pH"}
"""Words in place of a unit where a quantity has none."""


MEANINGS_MAX = 1_024
"""Names with a cached meaning; that of others is computed again."""


@lru_cache(MEANINGS_MAX)
def quantity_name(name: str) -> str:
    """Return the registry's name for a quantity; an unknown name unchanged."""
    if name in QUANTITIES:
        return name
    low = name.lower()
    return low if low in QUANTITIES else ALIASES.get(low, name)


BINARY_NAMES = {device_class: name for name, device_class in BINARY_OF_CLASS.items()}


def binary_name(quantity: str) -> str:
    """Return the name of a true or false quantity: `battery_low` of `battery`, a charge in %."""
    return BINARY_NAMES.get(quantity_name(quantity), quantity)


@lru_cache(MEANINGS_MAX)
def unit_name(unit: str | None) -> str | None:
    """Return the registry's spelling of a unit, None where there is none."""
    if unit is None or unit in NO_UNITS:
        return None
    return UNIT_ALIASES.get(unit, unit)


def usual_value(quantity: Quantity, value: float, unit: str | None) -> float | None:
    """Return a value in the usual unit of a quantity, None if it cannot be converted."""
    if not quantity.units:
        return value if unit is None else None
    usual = quantity.units[0]
    if unit == usual:
        return value
    own, base = FACTORS.get(unit or ""), FACTORS.get(usual)
    if unit not in quantity.units or own is None or base is None:
        return None
    return (value * own[0] + own[1] - base[1]) / base[0]


INSTANCE = re.compile("[a-z]{0,3}[0-9]{1,3}|[a-z]")
"""The instance of one of several of a quantity at a node: `2`, `l1`, `t1`, `ch0`, `b`."""

BRACKETED = re.compile(r"(.+?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]")
"""A name with its unit as in headers of tables: `Temperature (°C)`."""

CAPITAL = re.compile(r"([a-z]{3})([A-Z][A-Za-z]?)$")
"""A name with its unit as in program code: `tempC`."""

SPACES = re.compile(r"[\s_-]+")
WORDS = re.compile(SPACES.pattern + r"|(?<=[a-z0-9])(?=[A-Z][a-z])")
"""What separates the words of a name: `wind speed`, `wind_speed`, `WindSpeed`."""


def _spellings(units: Iterable[str]) -> dict[str, list[str]]:
    """Return the units that a word in a name can mean: names have no capitals or slashes."""
    found: dict[str, list[str]] = {}
    for written in (*units, *UNIT_ALIASES):
        low = written.lower()
        for word in (low, low.replace("/", "_"), low.replace("/", "")):
            found.setdefault(word, []).append(UNIT_ALIASES.get(written, written))
    return found


UNITS = dict.fromkeys(unit for quantity in QUANTITIES.values() for unit in quantity.units)
SPELLINGS = _spellings(UNITS)


@lru_cache(MEANINGS_MAX)
def meaning(name: str) -> tuple[str, str | None]:
    """Return the quantity that a name means, and its unit if the name contains one.

    `temp_c`, `tempC` and `Temperature (°C)` contain their unit, `humidity` has only one, and `temp`
    leaves it open. An instance stays: `temp_2` is `temperature_2`. An unknown name is unchanged,
    except that it loses a known unit in brackets.
    """
    quantity = quantity_name(name)
    if quantity in QUANTITIES:
        return quantity, NAMED_UNITS.get(name.lower(), OWN_UNITS.get(quantity))
    for base, word in _split(name):
        quantity = _with_instance(base)
        unit = _unit_of(quantity, word)
        if unit is not None:
            return quantity, unit
        if word in ("v", "V", "mv", "mV") and quantity == "battery":
            return "voltage", "V" if len(word) == 1 else "mV"
    quantity = _with_instance(name)
    known = instance_of(quantity)
    if known is not None:
        return quantity, OWN_UNITS.get(known.name)
    bracketed = BRACKETED.fullmatch(name)
    unit = known_unit(bracketed[2]) if bracketed is not None else None
    return (name, None) if bracketed is None or unit is None else (bracketed[1], unit)


@lru_cache(MEANINGS_MAX)
def instance_of(name: str) -> Quantity | None:
    """Return the quantity of this name, or of one such as `voltage_l1`; None for another."""
    base, _, instance = name.rpartition("_")
    known = QUANTITIES.get(quantity_name(name))
    if known is None and INSTANCE.fullmatch(instance):
        known = QUANTITIES.get(quantity_name(base))
    return known


def known_unit(word: str) -> str | None:
    """Return the registry's spelling of a unit, None for an unknown word."""
    unit = unit_name(word)
    return unit if unit in UNITS else None


def base_quantity(name: str) -> Quantity | None:
    """Return the quantity at the start of a name: `temperature` of `temperature_water`."""
    while name:
        known = QUANTITIES.get(quantity_name(name))
        if known is not None:
            return known
        name = name.rpartition("_")[0]
    return None


def last_quantity(name: str) -> Quantity | None:
    """Return the quantity of samples at the end of a name: `temperature` of `soil_temperature`."""
    while "_" in name:
        name = name.partition("_")[2]
        known = QUANTITIES.get(quantity_name(name))
        if known is not None and known.kind is Kind.SAMPLE:
            return known
    return None


def _with_instance(name: str) -> str:
    """Return a name in the registry's spelling, with its instance if it has one."""
    words = WORDS.sub("_", name.strip()).lower()
    quantity = quantity_name(words)
    base, _, instance = words.rpartition("_")
    if quantity not in QUANTITIES and INSTANCE.fullmatch(instance):
        quantity = quantity_name(base)
        if quantity in QUANTITIES:
            return f"{quantity}_{instance}"
    return quantity if quantity in QUANTITIES else name


def _split(name: str) -> Iterable[tuple[str, str]]:
    """Yield the ways to split a name into a base and the word of a unit."""
    bracketed = BRACKETED.fullmatch(name)
    if bracketed is not None:
        yield bracketed[1], bracketed[2]
    for written in dict.fromkeys((name, CAPITAL.sub(r"\1_\2", name))):  # `temp_degC`, `tempC`
        words = SPACES.split(written)
        for count in (2, 1):  # `pm25_ug_m3`, `temp_c`
            word = "_".join(words[-count:])
            if len(words) > count and word.lower() != "a":  # `current_a` may be the first phase
                yield "_".join(words[:-count]), word


def _unit_of(quantity: str, word: str) -> str | None:
    """Return the unit of a quantity that a word means."""
    known = instance_of(quantity)
    if known is None:
        return None
    exact = unit_name(word)
    if exact in known.units:
        return exact
    return next((unit for unit in SPELLINGS.get(word.lower(), ()) if unit in known.units), None)
