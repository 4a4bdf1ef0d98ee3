# What a study promises and costs, before anyone touches data.

potluck_plan <- function(study, base = NULL, hub = NULL) {
  if (inherits(study, "potluck_study")) {
    if (!is.null(base)) refuse("usage", "a study at a hub is sealed and needs no base")
    text <- hub_get(study$hub, c("studies", study$id, "study.toml"))
    return(new_plan(hub_plan(study$hub, text)))
  }
  path <- existing_file(study, "the study")
  if (is.null(hub)) {
    base <- if (!is.null(base)) c("--base", existing_file(base, "the base"))
    return(new_plan(run_json("plan", path, base)))
  }
  if (!is.null(base)) refuse("usage", "a hub finds the base among its own studies: leave base away")
  text <- paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  new_plan(hub_plan(as_hub(hub), text))
}

hub_plan <- function(hub, text) parse_json(hub_call(hub, "plan", body = enc2utf8(text)))

new_plan <- function(content) structure(class = "potluck_plan", content)

as.data.frame.potluck_plan <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- lapply(x$parties, function(one) {
    data.frame(
      party = one$party, columns = one$columns, encoded_columns = one$encoded_columns, noise = one$noise,
      noise_share = one$noise_share, release_bytes = one$release_bytes
    )
  })
  do.call(rbind, rows)
}

print.potluck_plan <- function(x, ...) {
  for (warning in unlist(x$warnings)) say(paste("Careful:", warning))
  if (length(x$warnings)) cat("\n")
  whole <- function(value) format(as.numeric(value), scientific = FALSE)
  cat(sprintf("Study %s: %s subjects, %s released rows%s\n\n", plain(x$study), whole(x$rows), whole(x$k),
              if (isTRUE(x$sealed)) "" else ", not sealed yet"))
  parties <- as.data.frame.potluck_plan(x)
  parties <- data.frame(
    party = plain(parties$party), columns = parties$columns, encoded = parties$encoded_columns,
    "noise sd" = signif(parties$noise, 4), "noise share" = percent(parties$noise_share), check.names = FALSE
  )
  print(parties, row.names = FALSE)
  outlook <- x$outlook
  cat("\n")
  forecast <- forecast_table(x)
  if (!is.null(forecast)) {
    say(sprintf(
      "Standard errors of coefficients, in standard deviations of the label for one of the feature, and people to tell an effect of %s from 0:",
      short(x$forecast$effect)
    ))
    print(forecast, row.names = FALSE)
    for (case in c("good", "typical", "hard")) say(indent = 2, paste0(case, ": ", x$forecast$assumptions[[case]]))
    cat("\n")
  }
  say(sprintf("What to expect of a regression of one column on all others, if they explain %s of it:", percent(outlook$signal)))
  say(indent = 2, sprintf("standard error of R-squared: %s", short(outlook$r_squared_error)))
  say(indent = 2, sprintf("of what can be explained, a fit recovers about %s", percent(outlook$recovered)))
  if (!is.null(outlook$smallest_useful_rows)) {
    say(indent = 2, sprintf("useful from about %s subjects on", whole(outlook$smallest_useful_rows)))
  }
  cat("\n")
  say(guarantee("Each party's release", x$per_party))
  say(guarantee("All releases jointly", x$joint))
  invisible(x)
}

# What is forecast of each column; nothing where there is no forecast.
forecast_table <- function(plan) {
  rows <- lapply(plan$forecast$columns, function(one) {
    error <- function(case) signif(one$standard_error[[case]], 2)
    people <- function(case) if (is.null(one$people[[case]])) NA else one$people[[case]]
    data.frame(
      party = plain(one$party), column = plain(one$column),
      good = error("good"), typical = error("typical"), hard = error("hard"),
      "people good" = people("good"), "people typical" = people("typical"), "people hard" = people("hard"),
      check.names = FALSE
    )
  })
  do.call(rbind, rows)
}

percent <- function(share) paste0(round(100 * share), "%")

short <- function(value) formatC(value, digits = 4, format = "g")

# In numbers that are rounded against us.
guarantee <- function(of, numbers) {
  sprintf("%s: epsilon = %s, delta = %s (%s-GDP); a test with 5%% false alarms notices a person's data in at most %s%%",
          of, above(numbers$epsilon), above(numbers$delta), above(numbers$mu),
          format(ceiling(1e4 * numbers$detection_at_5_percent) / 100))
}

# A number with six digits, rounded up; what has fewer stays as it is.
above <- function(value) {
  unit <- 10^(floor(log10(value)) - 5)
  up <- ceiling(value / unit - 1e-6) * unit
  format(signif(up, 6), digits = 6)
}
