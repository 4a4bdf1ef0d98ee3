# Regressions at a real hub; POTLUCK_TEST_HUB is the page of a study there with a public dataset.

library(potluck)

url <- Sys.getenv("POTLUCK_TEST_HUB")
if (!nzchar(url)) {
  cat("there is no hub to test at: set POTLUCK_TEST_HUB\n")
  quit("no")
}

kind <- function(expression) {
  tryCatch({ expression; "no error" }, error = function(e) class(e)[[1]])
}
said <- function(expression) tryCatch({ expression; "" }, error = conditionMessage)

## A hub lists its studies; one is found by page, id and name.
address <- sub("/studies/.*", "", url)
hub <- potluck_hub(address)
listed <- as.data.frame(hub)
stopifnot(nrow(listed) >= 1, all(listed$dataset), identical(listed$parties, rep(3, nrow(listed))))
stopifnot(any(grepl(listed$name[[1]], capture.output(print(hub)), fixed = TRUE)))
study <- potluck_hub(url)
stopifnot(inherits(study, "potluck_study"), endsWith(url, study$id))
stopifnot(identical(potluck_hub(address, study = study$id)$id, study$id))
stopifnot(identical(potluck_hub(address, study = listed$name[[1]])$id, listed$id[[1]]))
columns <- as.data.frame(study)
stopifnot(setequal(columns$column, c("age", "bmi", "salt", "exercise", "smoker", "pressure")))
stopifnot(identical(columns$levels[columns$column == "smoker"], "no, yes"))
stopifnot(any(grepl("pressure", capture.output(print(study)), fixed = TRUE)))

## The hub fits what the command fits on the verified dataset.
file <- tempfile(fileext = ".parquet")
stopifnot(identical(potluck_download(study, file), normalizePath(file)))
stopifnot(kind(potluck_download(study, file)) != "no error")
potluck_download(study, file, overwrite = TRUE)
here <- potluck_fit(pressure ~ age + smoker, file)
there <- potluck_fit(pressure ~ age + smoker, study)
stopifnot(identical(coef(there), coef(here)), identical(confint(there), confint(here)))
stopifnot(identical(vcov(there), vcov(here)), identical(there$findings, here$findings))
stopifnot(identical(capture.output(print(summary(there))), capture.output(print(summary(here)))))

## None of it needs the command.
options(potluck.command = "/nowhere/potluck")
stopifnot(identical(confint(potluck_fit(pressure ~ ., study), level = 0.9, parm = "age"),
                    confint(potluck_fit(pressure ~ ., study, level = 0.9), parm = "age")))
stopifnot(all(is.finite(predict(there, data.frame(age = c(30, NA), smoker = c("no", "yes"))))))
plan <- potluck_plan(study)
stopifnot(plan$sealed, identical(plan$id, study$id))
draft <- tempfile(fileext = ".toml")
writeLines(c(
  "format = 1", "[study]", "name = \"two\"", "id = \"integer\"", "rows = 200000", "[privacy]", "epsilon = 1.0", "delta = 1e-6", "[[party]]",
  "name = \"north\"", "[[party.column]]", "name = \"age\"", "lo = 18", "hi = 100", "[[party]]", "name = \"south\"",
  "[[party.column]]", "name = \"pressure\"", "lo = 80", "hi = 200"
), draft)
stopifnot(!potluck_plan(draft, hub = hub)$sealed, potluck_plan(draft, hub = address)$rows == 200000)
options(potluck.command = NULL)
stopifnot(identical(potluck_plan(draft, hub = hub), potluck_plan(draft)))

## What the hub refuses is said in its own words, and what cannot be reached is named.
stopifnot(kind(potluck_fit(pressure ~ height, study)) == "potluck_remote_error")
stopifnot(grepl("height", said(potluck_fit(pressure ~ height, study))))
stopifnot(kind(potluck_hub(address, study = strrep("0", 64))) == "potluck_remote_error")
stopifnot(kind(potluck_hub(address, study = "no such study")) == "potluck_input_error")
stopifnot(kind(potluck_fit(pressure ~ age, study, ridge = 1)) == "potluck_usage_error")
stopifnot(kind(potluck_fit(pressure ~ age, hub)) == "potluck_usage_error")
stopifnot(kind(potluck_hub("http://hub.example.org")) == "potluck_usage_error")
stopifnot(kind(potluck_hub("hub.example.org")) == "potluck_usage_error")
writeLines("[study]", draft)
stopifnot(kind(potluck_plan(draft, hub = hub)) == "potluck_remote_error")
stopifnot(grepl("127.0.0.1:9", said(potluck_hub("http://127.0.0.1:9", retry_for = 0)), fixed = TRUE))

cat("every test of hubs ran\n")
