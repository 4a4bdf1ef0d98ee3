# Regressions: fitted by the command on a file, or by a hub on the public dataset of a study.

potluck_fit <- function(formula, data, learner = c("posterior", "debiased", "ols"), ridge = NULL,
                        level = 0.95) {
  learner <- match.arg(learner)
  check_level(level)
  if (!is.null(ridge)) check_number(ridge, "ridge")
  names <- formula_names(formula)
  source <- fit_source(data, ridge)
  content <- fit_at(source, names$label, names$features, learner, ridge, level)
  new_fit(content, names, source, ridge, match.call())
}

# Where a regression is fitted, now and again.
fit_source <- function(data, ridge) {
  if (inherits(data, "potluck_study")) {
    if (!is.null(ridge)) {
      refuse("usage", "a hub fits without a ridge of your own; download the dataset with potluck_download() first")
    }
    return(list(study = data))
  }
  if (inherits(data, "potluck_hub")) {
    refuse("usage", "that is a hub; name a study of it: potluck_hub(url, study = \"...\")")
  }
  if (is.data.frame(data)) {
    refuse("usage", paste(
      "data is a data frame. A regression is fitted on what was published: give the path of a public dataset",
      "(from `potluck join` or potluck_download()), or a study from potluck_hub()"
    ))
  }
  list(file = existing_file(data, "the public dataset"))
}

# The model with what can be said of it in words, as `potluck inspect --json` prints it.
fit_at <- function(source, label, features, learner, ridge, level) {
  content <- if (is.null(source$study)) {
    model <- tempfile("potluck-model-", fileext = ".json")
    on.exit(unlink(model))
    asked <- c("--label", label, unlist(lapply(features, function(name) c("--feature", name))))
    if (!is.null(ridge)) asked <- c(asked, "--ridge", exact(ridge))
    run("fit", source$file, asked, "--learner", learner, "--level", exact(level), "--out", model)
    run_json("inspect", model)
  } else {
    query <- list(label = label, learner = learner, level = exact(level), words = "true")
    query <- c(query, setNames(as.list(features), rep("feature", length(features))))
    parse_json(hub_get(source$study$hub, c("studies", source$study$id, "fit"), query))
  }
  if (!identical(content$potluck, "model") || is.null(content$estimated)) {
    refuse("input", "this comes from an older potluck than this package needs; update the command or the hub")
  }
  content
}

exact <- function(number) format(number, digits = 17, scientific = FALSE, trim = TRUE)

check_number <- function(value, what) {
  if (!is.numeric(value) || length(value) != 1 || !is.finite(value)) {
    refuse("usage", sprintf("%s must be a number", what))
  }
}

check_level <- function(level) {
  check_number(level, "level")
  if (level <= 0 || level >= 1) refuse("usage", "level must lie between 0 and 1, such as 0.95")
}

# The columns that a formula names. Published columns are what they are: there is nothing to
# transform.
formula_names <- function(formula) {
  if (!inherits(formula, "formula") || length(formula) != 3) {
    refuse("usage", "give a formula with the label on its left, such as pressure ~ age + bmi, or pressure ~ .")
  }
  label <- formula[[2]]
  if (!is.name(label)) {
    refuse("usage", paste(
      "the label is the name of a published column, in backticks where it is unusual, such as `region=north`; not",
      sQuote(deparse1(label), FALSE)
    ))
  }
  features <- added_names(formula[[3]])
  if ("." %in% features) {
    if (length(features) > 1) refuse("usage", "`.` means all other columns: name them, or write `.` alone")
    features <- character()
  }
  list(label = as.character(label), features = unique(features))
}

added_names <- function(term) {
  if (is.name(term)) {
    return(as.character(term))
  }
  if (is.call(term) && identical(term[[1]], as.name("(")) && length(term) == 2) {
    return(added_names(term[[2]]))
  }
  if (is.call(term) && identical(term[[1]], as.name("+")) && length(term) == 3) {
    if (identical(term[[3]], 1)) return(added_names(term[[2]]))
    return(c(added_names(term[[2]]), added_names(term[[3]])))
  }
  refuse("usage", paste0(
    "features are published columns joined by +; ", sQuote(deparse1(term), FALSE), " is none. Only sums of products ",
    "were published, so there are no transformations and no interactions, and an intercept is always there"
  ))
}

new_fit <- function(content, asked, source, ridge, call) {
  terms <- c("(Intercept)", vapply(content$coefficients, function(one) term_name(one$term), ""))
  values <- c(list(content$intercept), lapply(content$coefficients, function(one) one$value))
  number <- function(field) setNames(vapply(values, function(value) as.numeric(value[[field]]), 0), terms)
  covariance <- do.call(rbind, lapply(content$covariance, function(row) as.numeric(unlist(row))))
  dimnames(covariance) <- list(terms, terms)
  structure(class = "potluck_fit", list(
    call = call,
    label = term_name(content$label),
    coefficients = number("estimate"),
    standard_errors = number("standard_error"),
    intervals = cbind(number("low"), number("high")),
    level = content$level,
    covariance = covariance,
    learner = content$learner,
    free_intercept = content$free_intercept,
    findings = fit_findings(content),
    marks = c(NA, vapply(content$marks$coefficients, function(mark) if (is.null(mark)) NA_character_ else mark, "")),
    model = content,
    asked = asked,
    ridge = ridge,
    source = source
  ))
}

# The name of what a coefficient belongs to, as everywhere: `column`, or `column=level`.
term_name <- function(term) {
  level <- term$level
  if (is.null(level)) term$numeric$column else paste0(level$column, "=", level$level)
}

# What to read before the first number.
fit_findings <- function(content) {
  said <- content$findings
  data.frame(
    kind = vapply(said, function(one) one$kind, ""),
    text = vapply(said, function(one) one$text, ""),
    coefficients = I(lapply(said, function(one) as.character(unlist(one$coefficients))))
  )
}
