#!/bin/sh
# What the add-on runs: the gateway, and the terminal UI for Home Assistant's sidebar.
set -eu

PORT=8099          # ingress_port of config.yaml
INGRESS=${1:-172.30.32.2} # Home Assistant's proxy, which nobody passes without a login

python -I /opt/tidegate/options_to_toml.py /data/options.json /data
while :; do
    tidegate tui --serve --port "$PORT" --behind "$INGRESS" || true
    sleep 5
done &
exec tidegate run --config /data/gateway.toml --data /data/gateway
