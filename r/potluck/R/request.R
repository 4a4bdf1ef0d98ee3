# Requests to a hub.

hub_get <- function(hub, path, query = NULL) hub_call(hub, path, query)

# Sends a request and returns the text of the answer. Where the connection fails, or the hub is busy,
# it tries again for as long as the hub was given.
hub_call <- function(hub, path, query = NULL, body = NULL) {
  url <- paste0(hub$address, "/api/v1/", paste(vapply(path, curl::curl_escape, ""), collapse = "/"))
  if (length(query)) {
    values <- vapply(query, function(value) curl::curl_escape(enc2utf8(value)), "")
    url <- paste0(url, "?", paste0(names(query), "=", values, collapse = "&"))
  }
  give_up <- Sys.time() + hub$retry_for
  pause <- 0.5
  repeat {
    answer <- tryCatch(curl::curl_fetch_memory(url, handle = hub_handle(hub, body)), error = identity)
    failed <- inherits(answer, "error")
    if (!failed && !answer$status_code %in% c(429L, 503L)) break
    if (!failed) {
      headers <- curl::parse_headers_list(answer$headers)
      pause <- max(pause, suppressWarnings(as.numeric(headers[["retry-after"]])), na.rm = TRUE)
    }
    if (Sys.time() + pause > give_up) break
    Sys.sleep(pause)
    pause <- min(2 * pause, 10)
  }
  if (failed) {
    refuse("remote", sprintf("the hub at %s cannot be reached: %s", hub$address, conditionMessage(answer)))
  }
  text <- rawToChar(answer$content)
  Encoding(text) <- "UTF-8"
  if (answer$status_code < 200 || answer$status_code >= 300) {
    refuse("remote", hub_problem(hub, text, answer$status_code))
  }
  text
}

hub_handle <- function(hub, body) {
  handle <- curl::new_handle(
    useragent = paste0("potluck-r/", packageVersion("potluck")), connecttimeout = 15, followlocation = FALSE
  )
  if (!is.null(hub$ca_certificate)) curl::handle_setopt(handle, cainfo = hub$ca_certificate)
  if (!is.null(body)) {
    bytes <- charToRaw(body)
    curl::handle_setopt(handle, post = TRUE, postfieldsize = length(bytes), postfields = bytes)
    curl::handle_setheaders(handle, "Content-Type" = "text/plain")
  }
  handle
}

# Problem details (RFC 9457) say what went wrong and what to do.
hub_problem <- function(hub, text, status) {
  problem <- tryCatch(parse_json(text), error = function(e) NULL)
  detail <- if (is.list(problem)) c(problem$detail, problem$title) else NULL
  detail <- detail[nzchar(detail)]
  if (length(detail)) gsub("[^[:print:]\n]", "?", detail[[1]]) else sprintf("the hub at %s answered with status %d", hub$address, status)
}
