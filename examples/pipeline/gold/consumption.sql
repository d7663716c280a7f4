-- What each meter rose by in a day, by the readings of that day. For --gold-sql: docs/use/pipeline-tables.md.
SELECT gateway_id, node, instance, event_date AS date, max(value) - min(value) AS kwh
FROM silver
WHERE quantity = 'energy' AND unit = 'kWh'
GROUP BY ALL
