# A hub, where parties publish and everyone reads.

potluck_hub <- function(url, study = NULL, ca_certificate = NULL, insecure_http = FALSE, retry_for = 60) {
  hub <- new_hub(url, ca_certificate, insecure_http, retry_for)
  named <- c(study, hub$study)
  if (length(named)) {
    return(hub_study(hub, named[[1]]))
  }
  hub$studies <- hub_studies(hub)
  hub
}

new_hub <- function(url, ca_certificate, insecure_http, retry_for) {
  if (!is.character(url) || length(url) != 1 || !grepl("^https?://[^/]+", url)) {
    refuse("usage", "give the hub's address, such as \"https://hub.example.org\", or that of a study's page")
  }
  check_number(retry_for, "retry_for")
  address <- sub("^(https?://[^/?#]+).*$", "\\1", url)
  host <- sub(":[0-9]+$", "", sub("^https?://([^/]*@)?", "", address))
  if (startsWith(address, "http://") && !insecure_http && !host %in% c("localhost", "127.0.0.1", "[::1]")) {
    refuse("usage", paste(
      "plain http:// is refused except on the same machine: anyone on the way could change what you read. Use",
      "https://, or insecure_http = TRUE"
    ))
  }
  page <- regmatches(url, regexec("/studies/([0-9a-f]{64})", url))[[1]]
  if (!is.null(ca_certificate)) ca_certificate <- existing_file(ca_certificate, "the certificate")
  structure(class = "potluck_hub", list(
    address = address, study = if (length(page)) page[[2]], ca_certificate = ca_certificate,
    insecure_http = insecure_http, retry_for = retry_for
  ))
}

as_hub <- function(hub) {
  if (inherits(hub, "potluck_study")) hub$hub
  else if (inherits(hub, "potluck_hub")) hub
  else new_hub(hub, NULL, FALSE, 60)
}

# All studies, newest first.
hub_studies <- function(hub) {
  rows <- list()
  after <- NULL
  repeat {
    page <- parse_json(hub_get(hub, "studies", if (!is.null(after)) list(after = exact(after))))
    rows <- c(rows, page$studies)
    after <- page$`next`
    if (is.null(after)) break
  }
  field <- function(name, kind) vapply(rows, function(one) as(one[[name]], kind), vector(kind, 1))
  data.frame(
    id = field("id", "character"), name = field("name", "character"), created = field("created", "character"),
    rows = field("rows", "numeric"), parties = field("parties", "numeric"), accepted = field("accepted", "numeric"),
    released = field("released", "numeric"), dataset = field("dataset", "logical")
  )
}

# A study by its id or by its name.
hub_study <- function(hub, named) {
  if (!is.character(named) || length(named) != 1) refuse("usage", "study must be the id or the name of a study")
  id <- named
  if (!grepl("^[0-9a-f]{64}$", named)) {
    studies <- hub_studies(hub)
    id <- studies$id[studies$name == named]
    if (length(id) != 1) {
      refuse("input", sprintf("%s at this hub has the name %s; give its id, as potluck_hub(url) lists them",
                              if (length(id)) "more than one study" else "no study", sQuote(named, FALSE)))
    }
  }
  details <- parse_json(hub_get(hub, c("studies", id)))
  created <- parse_json(hub_get(hub, c("studies", id, "events"), list(limit = "1")))$events[[1]]
  hub$studies <- NULL
  hub$study <- NULL
  structure(class = "potluck_study", list(
    hub = hub, id = id, name = details$name, details = details, columns = study_columns(created$study)
  ))
}

# The columns of a sealed study, those of the studies it extends first.
study_columns <- function(study) {
  earlier <- if (!is.null(study$sealed$base)) study_columns(study$sealed$base)
  text <- function(value) if (is.null(value)) NA_character_ else as.character(value)
  number <- function(value) if (is.null(value)) NA_real_ else as.numeric(value)
  rows <- lapply(study$party, function(party) {
    do.call(rbind, lapply(party$column, function(column) {
      data.frame(
        party = party$name, column = column$name, lo = number(column$lo), hi = number(column$hi),
        levels = if (is.null(column$levels)) NA_character_ else paste(unlist(column$levels), collapse = ", "),
        unit = text(column$unit), description = text(column$description)
      )
    }))
  })
  do.call(rbind, c(list(earlier), rows))
}

potluck_download <- function(study, file, overwrite = FALSE) {
  if (!inherits(study, "potluck_study")) {
    refuse("usage", "give a study at a hub: potluck_hub(url, study = \"...\")")
  }
  file <- path.expand(file)
  hub <- study$hub
  options <- c(
    if (overwrite) "--force", if (hub$insecure_http) "--insecure-http",
    if (!is.null(hub$ca_certificate)) c("--ca-cert", hub$ca_certificate)
  )
  run("hub", "get", paste0(hub$address, "/studies/", study$id), "--out", file, options)
  invisible(normalizePath(file))
}

as.data.frame.potluck_hub <- function(x, row.names = NULL, optional = FALSE, ...) x$studies

print.potluck_hub <- function(x, ...) {
  cat("potluck hub ", plain(x$address), "\n", sep = "")
  studies <- x$studies
  if (!nrow(studies)) {
    cat("no studies yet\n")
    return(invisible(x))
  }
  shown <- head(studies, 20)
  print(data.frame(
    study = plain(shown$name), id = paste0(substr(shown$id, 1, 12), "..."), people = shown$rows,
    released = sprintf("%g of %g", shown$released, shown$parties), dataset = ifelse(shown$dataset, "yes", "no")
  ), row.names = FALSE)
  if (nrow(studies) > nrow(shown)) cat(sprintf("and %d more: as.data.frame()\n", nrow(studies) - nrow(shown)))
  cat("\nOne of them: potluck_hub(url, study = \"name or id\")\n")
  invisible(x)
}

as.data.frame.potluck_study <- function(x, row.names = NULL, optional = FALSE, ...) x$columns

print.potluck_study <- function(x, ...) {
  details <- x$details
  cat(sprintf("Study %s at %s\nid %s\n", plain(x$name), plain(x$hub$address), x$id))
  cat(sprintf("%s people, %g of %g parties have released\n\n", format(details$rows, scientific = FALSE),
              details$released, details$parties))
  shown <- x$columns[colSums(!is.na(x$columns)) > 0]
  shown[] <- lapply(shown, function(column) {
    column <- if (is.numeric(column)) format(column, trim = TRUE) else plain(column)
    ifelse(is.na(column) | column == "NA", "", column)
  })
  print(shown, row.names = FALSE, right = FALSE)
  cat("\n")
  say(guarantee("Each party's release", details$per_party))
  say(guarantee("All releases jointly", details$joint))
  cat("\n", if (isTRUE(details$dataset)) "There is a public dataset: potluck_fit(label ~ ., study)"
      else "There is no public dataset yet", "\n", sep = "")
  invisible(x)
}
