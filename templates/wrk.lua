-- The hook that ngxlab gives to wrk (-s). It runs once, after the measurement, and prints one line:
--   NGXLAB-WRK {"duration_us":…,"requests":…,"bytes":…,"connect":…,"read":…,"write":…,"status":…,"timeout":…,
--               "counts":…,"min_us":…,"max_us":…,"mean_us":…,"stdev_us":…,"quantiles":[[percent,us],…]}
-- Keys from min_us on are left out when there was no sample (latency.min is then 2^64-1); counts alone is left out
-- in the event that it cannot be found.
-- Asking for a percentile costs one pass over the histogram in C; latency(i) in a loop would be quadratic.

-- counts returns the number of samples in the histogram, which exceeds the requests by what wrk back-filled.
-- percentile(p) is the lowest value while p*N/100 < count of the lowest value. latency(1) gives that count at no
-- cost, and halving an interval of candidates for N meets the edge; candidates lie between integers, so that
-- rounding cannot matter. Every call ends within the lower part of the histogram.
local function counts(latency)
  local lowest, first = latency(1)
  if first == nil or first < 1 then return 0 end
  local function at_most(n) -- is N <= n?
    return latency:percentile(100 * first / (n + 0.5)) == lowest
  end
  local low, high = first - 1, first
  while not at_most(high) do
    if high > 2 ^ 48 then return nil end
    low, high = high, high * 2
  end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if at_most(middle) then high = middle else low = middle end
  end
  return high
end

local function quantiles(latency)
  local out = {}
  local function add(p) out[#out + 1] = string.format("[%.6g,%.0f]", p, latency:percentile(p)) end
  for p = 1, 899 do
    if p % 8 == 0 or p == 500 or p == 750 then add(p / 10) end -- 0.8, 1.6 … 89.6, and the 50 and 75 that are shown
  end
  for p = 900, 989, 2 do add(p / 10) end -- 90.0, 90.2 … 98.8
  for p = 990, 998 do add(p / 10) end
  for p = 9990, 9998 do add(p / 100) end
  for p = 99990, 99999 do add(p / 1000) end -- percentile(100) is always 0
  return table.concat(out, ",")
end

local function histogram(latency)
  local n = counts(latency)
  if n == 0 then return '"counts":0' end
  local known = n and string.format('"counts":%.0f,', n) or ""
  return known .. string.format('"min_us":%.0f,"max_us":%.0f,"mean_us":%.6f,"stdev_us":%.6f,"quantiles":[%s]',
    latency.min, latency.max, latency.mean, latency.stdev, quantiles(latency))
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'NGXLAB-WRK {"duration_us":%.0f,"requests":%.0f,"bytes":%.0f,"connect":%.0f,"read":%.0f,"write":%.0f,"status":%.0f,"timeout":%.0f,%s}\n',
    summary.duration, summary.requests, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout, histogram(latency)))
end
