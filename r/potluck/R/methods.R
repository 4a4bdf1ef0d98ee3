# What R users do with a regression.

coef.potluck_fit <- function(object, ...) object$coefficients

vcov.potluck_fit <- function(object, ...) object$covariance

nobs.potluck_fit <- function(object, ...) as.numeric(object$model$diagnostics$rows)

confint.potluck_fit <- function(object, parm, level = object$level, ...) {
  check_level(level)
  ends <- if (isTRUE(all.equal(level, object$level, tolerance = 1e-12))) {
    object$intervals
  } else {
    fitted_again(object, level)$intervals
  }
  tail <- (1 - level) / 2
  percent <- function(share) paste(format(100 * share, trim = TRUE, digits = 3), "%")
  dimnames(ends) <- list(names(object$coefficients), percent(c(tail, 1 - tail)))
  if (!object$free_intercept) ends["(Intercept)", ] <- NA
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

# The same regression with intervals at another level. They cannot be stretched from one level to
# another: they are quantiles of a mixture, and need not be symmetric.
fitted_again <- function(object, level) {
  asked <- object$asked
  content <- fit_at(object$source, asked$label, asked$features, object$learner, object$ridge, level)
  if (!identical(content$dataset, object$model$dataset)) {
    refuse("input", "the public dataset is another one than when this was fitted; fit the regression again")
  }
  new_fit(content, asked, object$source, object$ridge, object$call)
}

# One less the level at which an interval reaches 0, by Student's t on the side towards 0: below one
# less the level of the intervals just where they leave 0 out.
p_values <- function(object) {
  df <- object$model$diagnostics$degrees
  estimate <- object$coefficients
  towards <- ifelse(estimate > 0, estimate - object$intervals[, 1], object$intervals[, 2] - estimate)
  p <- 2 * pt(-qt((1 + object$level) / 2, df) * abs(estimate) / towards, df)
  p[estimate == 0] <- 1
  if (!object$free_intercept) p[["(Intercept)"]] <- NA
  p
}

predict.potluck_fit <- function(object, newdata, ...) {
  if (missing(newdata)) {
    refuse("usage", "give newdata: what was published holds no person's row, so there is none to predict for")
  }
  if (!is.data.frame(newdata)) refuse("usage", "newdata must be a data frame")
  model <- object$model
  total <- rep(model$prediction_intercept, nrow(newdata))
  for (one in model$coefficients) {
    value <- term_values(one$term, newdata)
    value <- pmin(pmax(value, one$range[[1]]), one$range[[2]])
    value[is.na(value)] <- one$missing
    total <- total + one$prediction * value
  }
  prediction <- pmin(pmax(total, model$label_range[[1]]), model$label_range[[2]])
  setNames(prediction, rownames(newdata))
}

# What a feature is in each row: a number, or 1 or 0 for a level; NA where it is missing.
term_values <- function(term, newdata) {
  column <- if (is.null(term$level)) term$numeric$column else term$level$column
  if (!column %in% names(newdata)) {
    refuse("input", sprintf("newdata has no column %s", sQuote(column, FALSE)))
  }
  given <- newdata[[column]]
  if (is.null(term$level)) numeric_values(given, column) else level_values(given, term$level)
}

numeric_values <- function(given, column) {
  if (inherits(given, "Date")) given <- unclass(given)
  if (is.factor(given) || !(is.numeric(given) || is.logical(given))) {
    refuse("input", sprintf("column %s of newdata must hold numbers", sQuote(column, FALSE)))
  }
  value <- as.numeric(given)
  value[!is.finite(value)] <- NA
  value
}

level_values <- function(given, term) {
  text <- if (is.logical(given)) tolower(as.character(given)) else as.character(given)
  levels <- as.character(unlist(term$levels))
  known <- text %in% levels
  # What stands for a missing value in files, unless it is a level.
  text[!known & text %in% c("", "NA", "NaN", "nan", "null", "NULL")] <- NA
  unknown <- !known & !is.na(text)
  if (any(unknown)) {
    if (identical(term$unknown, "error")) {
      refuse("input", sprintf(
        "column %s of newdata has a value in row %d that is not one of the model's levels, %s; correct it, or make it NA",
        sQuote(term$column, FALSE), which(unknown)[[1]], paste(levels, collapse = ", ")
      ))
    }
    text[unknown] <- if (identical(term$unknown, "other")) "other" else NA
  }
  ifelse(is.na(text), NA_real_, as.numeric(text == term$level))
}

# Where the package generics is there.
tidy.potluck_fit <- function(x, conf.int = TRUE, conf.level = x$level, ...) {
  sources <- x$model$coefficients
  of_each <- function(field) {
    vapply(sources, function(one) if (is.null(one[[field]])) NA_character_ else one[[field]], "")
  }
  errors <- x$standard_errors
  if (!x$free_intercept) errors[["(Intercept)"]] <- NA
  table <- data.frame(
    term = names(x$coefficients), estimate = unname(x$coefficients), std.error = unname(errors),
    p.value = unname(p_values(x))
  )
  if (conf.int) {
    ends <- confint.potluck_fit(x, level = conf.level)
    table$conf.low <- unname(ends[, 1])
    table$conf.high <- unname(ends[, 2])
  }
  table$party <- c(NA, of_each("party"))
  table$unit <- c(NA, of_each("unit"))
  table$findings <- x$marks
  table
}

glance.potluck_fit <- function(x, ...) {
  r_squared <- r_squared(x)
  data.frame(
    r.squared = r_squared[[1]], r.squared.low = r_squared[[2]], r.squared.high = r_squared[[3]],
    r.squared.findings = r_squared_mark(x), findings = nrow(x$findings), nobs = nobs.potluck_fit(x),
    released.rows = as.numeric(x$model$diagnostics$released_rows), df = as.numeric(x$model$diagnostics$degrees),
    learner = x$learner, conf.level = x$level, study = x$model$study
  )
}

# Estimate and interval of R-squared, within what a share can be: noise may take it beyond.
r_squared <- function(object) {
  known <- object$model$diagnostics$r_squared
  if (is.null(known)) {
    return(c(NA_real_, NA_real_, NA_real_))
  }
  ends <- if (is.null(known$interval)) c(NA, NA) else unlist(known$interval)
  pmin(pmax(c(known$estimate, ends), 0), 1)
}

r_squared_mark <- function(object) {
  mark <- object$model$marks$r_squared
  if (is.null(mark)) NA_character_ else mark
}
