select
    gateway as gateway_id,
    sum(last - first + 1) as numbers,
    min(after) as since
from {{ source('fleet', 'gaps') }}
where outcome in ('missing', 'lost')
group by all
