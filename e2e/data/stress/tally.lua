-- Prints every figure of a phase as one line of JSON. It precedes the phase's own script.
--
-- wrk prints "Socket errors" and "Non-2xx" only if there are some. This line has every figure every time. Each thread has a Lua state of
-- its own; `done` runs in another one and collects the threads' counts.

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("thread_number", #threads)
end

-- Counted by the phases that build their requests.
requests_built = 0
requests_marked = 0
bytes_built = 0

local function sum(name)
  local total = 0
  for _, thread in ipairs(threads) do
    total = total + (thread:get(name) or 0)
  end
  return total
end

function done(summary, latency, requests)
  local errors = summary.errors
  local figures = {
    { "threads", #threads },
    { "duration_us", summary.duration },
    { "requests", summary.requests },
    { "bytes", summary.bytes },
    { "connect", errors.connect },
    { "read", errors.read },
    { "write", errors.write },
    { "status", errors.status },
    { "timeout", errors.timeout },
    { "p50_us", latency:percentile(50) },
    { "p99_us", latency:percentile(99) },
    { "max_us", latency.max },
    { "built", sum("requests_built") },
    { "marked", sum("requests_marked") },
    { "built_bytes", sum("bytes_built") },
  }
  local cells = {}
  for _, figure in ipairs(figures) do
    cells[#cells + 1] = string.format("\"%s\":%.0f", figure[1], figure[2])
  end
  io.write("tally: {", table.concat(cells, ","), "}\n")
end
