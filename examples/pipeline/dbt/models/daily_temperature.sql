select
    gateway_id,
    date,
    min("min") as coldest,
    sum(mean * "count") / sum("count") as mean,
    max("max") as warmest,
    sum("count") as readings
from {{ source('fleet', 'readings_1h') }}
where quantity = 'temperature'
group by all
