# Regressions for people: what speaks against them first.

print.potluck_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_opening(x)
  cat(plain(x$label), " by ", x$learner, " (study ", plain(x$model$study), ")\n\n", sep = "")
  shown <- x$coefficients
  names(shown) <- marked_names(x)
  print(shown, digits = digits)
  if (any(!is.na(x$marks))) cat("\n(!) something speaks against it: see above, and summary()\n")
  invisible(x)
}

summary.potluck_fit <- function(object, ...) structure(class = "summary.potluck_fit", list(fit = object))

print.summary.potluck_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  fit <- x$fit
  model <- fit$model
  print_opening(fit)
  unit <- if (is.null(model$label_unit)) "" else paste0(" (", plain(model$label_unit), ")")
  cat(plain(fit$label), unit, " by ", fit$learner, ", study ", plain(model$study), "\n\n", sep = "")
  print(coefficient_table(fit, digits), quote = FALSE, right = TRUE)
  if (length(model$cut_to)) {
    cat("\n")
    say(paste0("Cut at least to: ", paste(unlist(model$cut_to), collapse = ", "), "."))
  }
  cat("\n", facts(fit), "\n\n", sep = "")
  say(paste0("These are ", model$estimated, "."))
  if (!fit$free_intercept) {
    say(paste(
      "No intercept is estimated: the fit passes through the middle of all bounds. Where the average of a column",
      "lies far from it, the slopes absorb the difference."
    ))
  } else if (nrow(fit$findings)) {
    say("The intercept follows from the coefficients: what speaks against one of them speaks against it.")
  }
  for (sentence in unlist(model$privacy)) say(sentence)
  invisible(x)
}

# What a reader must know before the first number: nothing where nothing speaks against the fit.
print_opening <- function(fit) {
  fault <- fit$model$fault
  sentences <- c(if (!is.null(fault)) paste0("Careful: ", fault, "."), fit$findings$text)
  if (length(sentences)) {
    cat(fit$model$heading, ":\n", sep = "")
    for (sentence in sentences) cat(strwrap(sentence, width = screen(), initial = "- ", prefix = "  "), sep = "\n")
    cat("\n")
  }
}

screen <- function() min(100, getOption("width"))

say <- function(sentence, indent = 0) {
  cat(strwrap(sentence, width = screen(), indent = indent, exdent = indent + 2), sep = "\n")
}

marked_names <- function(fit) {
  paste0(plain(names(fit$coefficients)), ifelse(is.na(fit$marks), "", " (!)"))
}

coefficient_table <- function(fit, digits) {
  number <- function(values) ifelse(is.na(values), "", formatC(values, digits = digits, format = "g", flag = "#"))
  errors <- fit$standard_errors
  if (!fit$free_intercept) errors[["(Intercept)"]] <- NA
  ends <- confint.potluck_fit(fit)
  p <- p_values(fit)
  table <- cbind(
    "Estimate" = number(fit$coefficients), "Std. Error" = number(errors), number(ends[, 1]), number(ends[, 2]),
    "p-value" = ifelse(is.na(p), "", formatC(p, digits = 3, format = "f"))
  )
  colnames(table)[3:4] <- colnames(ends)
  if (any(!is.na(fit$marks))) table <- cbind(table, "Findings" = ifelse(is.na(fit$marks), "", fit$marks))
  rownames(table) <- plain(names(fit$coefficients))
  table
}

facts <- function(fit) {
  diagnostics <- fit$model$diagnostics
  known <- r_squared(fit)
  share <- function(value) formatC(value, digits = 3, format = "f")
  shown <- if (is.na(known[[1]])) "not known" else share(known[[1]])
  if (!is.na(known[[2]])) shown <- sprintf("%s [%s, %s]", shown, share(known[[2]]), share(known[[3]]))
  mark <- r_squared_mark(fit)
  if (!is.na(mark)) shown <- sprintf("%s (%s)", shown, mark)
  whole <- function(value) format(as.numeric(value), scientific = FALSE)
  sprintf("n = %s, released rows = %s, R-squared = %s", whole(diagnostics$rows), whole(diagnostics$released_rows), shown)
}
