"""The fleet's tables every five minutes, and their upkeep once a night, as Airflow DAGs."""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

BEGIN = datetime(2026, 1, 1)  # noqa: DTZ001 - Airflow takes it for UTC
ENVIRONMENT = {"TIDEGATE_PIPELINE_CONFIG": "/etc/tidegate/pipeline.toml"}
# An exit status of 1 is Spark's: what was committed stays, and another try goes on from there.
AGAIN = {"retries": 2, "retry_delay": timedelta(minutes=1)}

with DAG(
    "tidegate_tables",
    schedule=timedelta(minutes=5),
    start_date=BEGIN,
    catchup=False,
    max_active_runs=1,  # the tables have one writer
    default_args=AGAIN,
):
    once = BashOperator(
        task_id="once", bash_command="tidegate-pipeline once", env=ENVIRONMENT, append_env=True
    )
    # Ends with 3, and so fails, if numbers are missing or lost.
    complete = BashOperator(
        task_id="ledger",
        bash_command="tidegate-pipeline ledger",
        env=ENVIRONMENT,
        append_env=True,
        retries=0,
    )
    once >> complete

with DAG(
    "tidegate_upkeep", schedule="30 3 * * *", start_date=BEGIN, catchup=False, default_args=AGAIN
):
    BashOperator(
        task_id="compact",
        bash_command="tidegate-pipeline compact --keep 400d && tidegate-pipeline vacuum",
        env=ENVIRONMENT,
        append_env=True,
    )
