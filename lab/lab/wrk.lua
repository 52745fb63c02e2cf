-- Requests in batches of `depth`, which the lab sets above, and exact counts as JSON: wrk rounds its own. With `latencies` also
-- these, in nanoseconds, as wrk corrects them.

if depth > 1 then
  local batch
  init = function(args)
    batch = string.rep(wrk.format("GET"), depth)
  end
  request = function() return batch end
end

done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"responses":%.0f,"bytes":%.0f,"duration_us":%.0f,"connect_errors":%.0f,"read_errors":%.0f,"write_errors":%.0f,"timeouts":%.0f,"status_errors":%.0f',
    summary.requests, summary.bytes, summary.duration, errors.connect, errors.read, errors.write, errors.timeout, errors.status))
  if latencies then
    local at = function(percent) return latency:percentile(percent) * 1e3 end
    io.write(string.format(',"latency":{"mean_ns":%.0f,"p50_ns":%.0f,"p95_ns":%.0f,"p99_ns":%.0f,"p999_ns":%.0f,"max_ns":%.0f}',
      latency.mean * 1e3, at(50), at(95), at(99), at(99.9), latency.max * 1e3))
  end
  io.write("}\n")
end
