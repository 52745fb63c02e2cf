-- Requests in batches of `depth`, which the lab sets above, and exact counts as JSON: wrk rounds its own.

if depth > 1 then
  local batch
  init = function(args)
    batch = string.rep(wrk.format("GET"), depth)
  end
  request = function() return batch end
end

done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"responses":%.0f,"bytes":%.0f,"duration_us":%.0f,"connect_errors":%.0f,"read_errors":%.0f,"write_errors":%.0f,"timeouts":%.0f,"status_errors":%.0f}\n',
    summary.requests, summary.bytes, summary.duration, errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
