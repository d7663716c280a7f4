-- The temperatures of each place and day, by the names in the assets
SELECT place, readings.date, unit, min(min) AS lowest, avg(time_weighted_mean) AS mean, max(max) AS highest
FROM readings_1d AS readings
JOIN assets USING (gateway_id, node)
WHERE quantity = 'temperature'
GROUP BY ALL
