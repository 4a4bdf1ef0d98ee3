# The command on this machine.

#' The command that this package runs: the option `potluck.command`, the environment variable
#' POTLUCK, or `potluck` on the path.
potluck_command <- function(required = TRUE) {
  named <- c(getOption("potluck.command"), Sys.getenv("POTLUCK"))
  named <- named[nzchar(named)]
  path <- if (length(named)) Sys.which(named[[1]]) else Sys.which("potluck")
  if (nzchar(path)) {
    return(unname(path))
  }
  if (!required) {
    return(NULL)
  }
  where <- if (length(named)) sprintf("%s cannot be run", sQuote(named[[1]], FALSE)) else "it is not on the path"
  refuse("usage", paste0(
    "the command potluck is needed, and ", where,
    ". Install it, or name it: options(potluck.command = \"/path/to/potluck\") or the environment variable ",
    "POTLUCK. Without it, regressions can be fitted at a hub: potluck_hub()"
  ))
}

# Runs the command and returns what it printed as JSON.
run_json <- function(...) {
  parse_json(run("--json", ...))
}

# Runs the command and returns what it printed. What fails is an error of the kind that its exit code
# tells.
run <- function(...) {
  arguments <- c(...)
  out <- tempfile("potluck-out-")
  talk <- tempfile("potluck-talk-")
  on.exit(unlink(c(out, talk)))
  status <- suppressWarnings(system2(potluck_command(), shQuote(arguments), stdout = out, stderr = talk))
  said <- readLines(talk, warn = FALSE, encoding = "UTF-8")
  if (!identical(as.integer(status), 0L)) {
    refuse(kind_of_exit(status), problem_said(said, status))
  }
  paste(readLines(out, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
}

# With --json an error is a line of JSON; wrong arguments are said in words.
problem_said <- function(said, status) {
  said <- said[nzchar(said)]
  errors <- lapply(said, function(line) tryCatch(parse_json(line)$error, error = function(e) NULL))
  errors <- Filter(is.character, errors)
  if (length(errors)) {
    return(errors[[length(errors)]])
  }
  if (!length(said)) {
    return(sprintf("the command potluck ended with status %s and said nothing", status))
  }
  paste(sub("^error: ", "", said), collapse = "\n")
}

# The exit codes of the command (`potluck --help`).
kind_of_exit <- function(status) {
  kinds <- c("2" = "usage", "3" = "input", "4" = "budget", "5" = "integrity", "6" = "remote")
  kind <- unname(kinds[as.character(status)])
  if (is.na(kind)) "defect" else kind
}

# An error with a class for its kind, so that tryCatch(..., potluck_input_error = ) can tell.
refuse <- function(kind, message) {
  classes <- c(paste0("potluck_", kind, "_error"), "potluck_error", "error", "condition")
  stop(structure(class = classes, list(message = message, call = NULL)))
}

parse_json <- function(text) {
  jsonlite::fromJSON(text, simplifyVector = FALSE)
}

# Names come from strangers: none may steer a terminal.
plain <- function(text) {
  gsub("[[:cntrl:]]", "?", text)
}

# The path of a file that is there.
existing_file <- function(path, what) {
  if (!is.character(path) || length(path) != 1 || is.na(path)) {
    refuse("usage", sprintf("%s must be the path of a file", what))
  }
  path <- path.expand(path)
  if (!file.exists(path) || dir.exists(path)) {
    refuse("input", sprintf("there is no file %s (%s)", sQuote(path, FALSE), what))
  }
  normalizePath(path)
}
