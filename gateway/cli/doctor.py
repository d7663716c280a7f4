"""`tidegate doctor`: what is well and what is not on the board that a gateway runs on."""

from pathlib import Path

from gateway.app.checks.finding import Finding, Health, Patient
from gateway.app.checks.findings import look
from gateway.cli.doctor_memory import memory
from gateway.config.load import load


def doctor(data: Path, config: Path | None) -> int:
    """Print the findings; return 1 if something is bad, 0 otherwise.

    Raises ConfigurationError for a configuration file that cannot be used. It only reads, and
    works beside a running gateway.
    """
    patient = Patient(data, None if config is None else load(config))
    findings = [*look(patient), *memory(patient)]
    for finding in findings:
        print(f"{finding.health:<8} {finding.text}")
    print(_verdict(findings))
    return 1 if any(finding.health is Health.BAD for finding in findings) else 0


def _verdict(findings: list[Finding]) -> str:
    bad = sum(finding.health is Health.BAD for finding in findings)
    warnings = sum(finding.health is Health.WARNING for finding in findings)
    return f"doctor: {bad} bad, {warnings} to look after" if bad or warnings else "doctor: all well"
