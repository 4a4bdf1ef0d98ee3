# Regressions, plans and all that R does with them, against the command itself.

library(potluck)

if (is.null(potluck_command(required = FALSE))) {
  cat("there is no command potluck: set POTLUCK\n")
  quit("no")
}

command <- function(...) {
  out <- system2(potluck_command(), shQuote(c(...)), stdout = TRUE, stderr = FALSE)
  stopifnot(is.null(attr(out, "status")))
  Encoding(out) <- "UTF-8"
  out
}
kind <- function(expression) {
  tryCatch({ expression; "no error" }, error = function(e) class(e)[[1]])
}
said <- function(expression) tryCatch({ expression; "" }, error = conditionMessage)

demo <- tempfile("demo")
many <- file.path(demo, "public.parquet")
made <- command("demo", "--rows", "100000", "--out", demo)
few_demo <- tempfile("few")
few <- file.path(few_demo, "public.parquet")
made <- command("demo", "--rows", "2000", "--epsilon", "0.05", "--out", few_demo)

## A fit has the numbers of the command.
fit <- potluck_fit(pressure ~ age + bmi + salt + smoker, many)
json <- jsonlite::fromJSON(paste(
  command("--json", "fit", many, "--label", "pressure", "--features", "age,bmi,salt,smoker"), collapse = "\n"
), simplifyVector = FALSE)
expected <- c(json$intercept$estimate, sapply(json$coefficients, function(one) one$value$estimate))
stopifnot(identical(unname(coef(fit)), expected))
stopifnot(identical(names(coef(fit)), c("(Intercept)", "age", "bmi", "salt", "smoker=yes")))
lows <- c(json$intercept$low, sapply(json$coefficients, function(one) one$value$low))
highs <- c(json$intercept$high, sapply(json$coefficients, function(one) one$value$high))
stopifnot(identical(unname(confint(fit)), cbind(lows, highs, deparse.level = 0)))
stopifnot(identical(colnames(confint(fit)), c("2.5 %", "97.5 %")))
stopifnot(identical(dimnames(vcov(fit)), list(names(coef(fit)), names(coef(fit)))), isSymmetric(vcov(fit)))
stopifnot(all.equal(unname(sqrt(diag(vcov(fit)))), unname(fit$standard_errors), tolerance = 1e-6))
stopifnot(nobs(fit) == 100000)

## A formula with a dot takes all other columns, and one may name a level.
all <- potluck_fit(pressure ~ ., many)
stopifnot(setequal(names(coef(all)), c("(Intercept)", "age", "bmi", "salt", "exercise", "smoker=yes")))
stopifnot(identical(coef(potluck_fit(pressure ~ (age + bmi), many)), coef(potluck_fit(pressure ~ age + bmi + 1, many))))
share <- potluck_fit(`smoker=yes` ~ age, many)
stopifnot(share$label == "smoker=yes")

## Intervals at another level are fitted again, not stretched, and are those of the command.
wide <- confint(fit, level = 0.99)
narrow <- confint(fit, "age", level = 0.8)
again <- jsonlite::fromJSON(paste(command(
  "--json", "fit", many, "--label", "pressure", "--features", "age,bmi,salt,smoker", "--level", "0.8"
), collapse = "\n"), simplifyVector = FALSE)
stopifnot(identical(dimnames(narrow), list("age", c("10 %", "90 %"))))
stopifnot(narrow[[1]] == again$coefficients[[1]]$value$low, narrow[[2]] == again$coefficients[[1]]$value$high)
stopifnot(all(wide[, 1] < confint(fit)[, 1]), all(wide[, 2] > confint(fit)[, 2]))
copy <- tempfile(fileext = ".parquet")
stopifnot(file.copy(many, copy))
moved <- potluck_fit(pressure ~ age, copy)
stopifnot(file.copy(few, copy, overwrite = TRUE))
stopifnot(kind(confint(moved, level = 0.5)) == "potluck_input_error")
stopifnot(identical(dim(confint(moved)), c(2L, 2L)))

## P-values agree with the intervals: below 0.05 just where those at 95% leave 0 out.
table <- potluck:::tidy.potluck_fit(fit)
stopifnot(identical(table$p.value < 0.05, unname(lows > 0 | highs < 0)), identical(table$term, names(coef(fit))))

## Findings come first, in the command's own sentences, and mark their coefficients.
doubtful <- potluck_fit(pressure ~ ., few)
stopifnot(nrow(doubtful$findings) > 0, any(!is.na(doubtful$marks)))
options(width = 100)
text <- paste(command("fit", few, "--label", "pressure"), collapse = "\n")
squeezed <- function(text) gsub("[[:space:]]+", " ", paste(text, collapse = " "))
for (sentence in doubtful$findings$text) stopifnot(grepl(squeezed(sentence), squeezed(text), fixed = TRUE))
for (shown in list(capture.output(print(doubtful)), capture.output(print(summary(doubtful))))) {
  stopifnot(startsWith(shown[[1]], doubtful$model$heading), startsWith(shown[[2]], "- "))
  first_number <- which(grepl("(Intercept)", shown, fixed = TRUE))[[1]]
  last_finding <- max(which(startsWith(shown, "- ")))
  stopifnot(last_finding < first_number)
}
stopifnot(any(grepl("age (!)", capture.output(print(doubtful)), fixed = TRUE)) || is.na(doubtful$marks[[2]]))
stopifnot(!any(grepl("(!)", capture.output(print(potluck_fit(pressure ~ age + bmi, many))), fixed = TRUE)) ||
            nrow(potluck_fit(pressure ~ age + bmi, many)$findings) > 0)

## Learners other than the default, one without an intercept of its own.
ols <- potluck_fit(pressure ~ age + bmi, many, learner = "ols", ridge = 0.05)
stopifnot(ols$model$ridge == 0.05, grepl("shrunk by a ridge of 0.05", ols$model$estimated, fixed = TRUE))
stopifnot(grepl("shrunk by a ridge", squeezed(capture.output(summary(ols))), fixed = TRUE))
if (!ols$free_intercept) stopifnot(all(is.na(confint(ols)["(Intercept)", ])))

## Predictions are those of the command, whatever the rows hold.
people <- data.frame(
  age = c(40, NA, 500, -3, Inf, 61.5), bmi = c(20, 30, NA, 25.5, 22, 28), salt = c(5, 6, 7, 8, NA, 10),
  smoker = c("yes", "no", NA, "sometimes", "", "yes")
)
csv <- tempfile(fileext = ".csv")
written <- people
written$age[is.infinite(written$age)] <- NA
write.csv(written, csv, row.names = FALSE, quote = FALSE, na = "")
model <- tempfile(fileext = ".json")
made <- command("fit", many, "--label", "pressure", "--features", "age,bmi,salt,smoker", "--out", model)
theirs <- read.csv(text = command("predict", model, "--data", csv))$pressure
ours <- predict(fit, people)
stopifnot(all.equal(unname(ours), theirs, tolerance = 1e-3), identical(names(ours), rownames(people)))
people$smoker <- factor(people$smoker)
stopifnot(identical(predict(fit, people), ours))
people$salt <- NULL
stopifnot(kind(predict(fit, people)) == "potluck_input_error", kind(predict(fit)) == "potluck_usage_error")
strict <- fit
strict$model$coefficients[[4]]$term$level$unknown <- "error"
stopifnot(grepl("in row 4 that is not", said(predict(strict, cbind(people, salt = 1)))))
stopifnot(!grepl("sometimes", said(predict(strict, cbind(people, salt = 1)))))

## A plot is drawn and leaves the device as it was.
pdf(NULL)
before <- par("mai")
stopifnot(identical(plot(doubtful), doubtful), identical(par("mai"), before))
invisible(dev.off())

## What cannot be done is refused with a remedy.
stopifnot(kind(potluck_fit(pressure ~ log(age), many)) == "potluck_usage_error")
stopifnot(grepl("no transformations", said(potluck_fit(pressure ~ age * bmi, many))))
stopifnot(kind(potluck_fit(pressure ~ age - 1, many)) == "potluck_usage_error")
stopifnot(kind(potluck_fit(log(pressure) ~ age, many)) == "potluck_usage_error")
stopifnot(kind(potluck_fit(~age, many)) == "potluck_usage_error")
stopifnot(kind(potluck_fit(pressure ~ age, many, level = 95)) == "potluck_usage_error")
stopifnot(kind(potluck_fit(pressure ~ age, data.frame(pressure = 1, age = 1))) == "potluck_usage_error")
stopifnot(kind(potluck_fit(pressure ~ age, "nowhere.parquet")) == "potluck_input_error")
stopifnot(kind(potluck_fit(pressure ~ height, many)) == "potluck_input_error")
stopifnot(grepl("height", said(potluck_fit(pressure ~ height, many))))
damaged <- tempfile()
bytes <- readBin(many, "raw", file.size(many))
middle <- length(bytes) %/% 2
bytes[middle] <- xor(bytes[middle], as.raw(1))
writeBin(bytes, damaged)
stopifnot(kind(potluck_fit(pressure ~ age, damaged)) %in% c("potluck_integrity_error", "potluck_input_error"))

## A plan is that of the command.
study <- file.path(demo, "study.toml")
plan <- potluck_plan(study)
stopifnot(identical(unclass(plan), jsonlite::fromJSON(paste(command("--json", "plan", study), collapse = "\n"),
                                                      simplifyVector = FALSE)))
stopifnot(identical(as.data.frame(plan)$party, c("north", "south", "registry")))
shown <- capture.output(print(plan))
stopifnot(any(grepl("Each party's release: epsilon = 1, delta = 1e-06", shown, fixed = TRUE)))

## The command can be named, and is missed with a remedy.
named <- potluck_command()
Sys.unsetenv("POTLUCK")
options(potluck.command = named)
stopifnot(identical(potluck_command(), named))
options(potluck.command = "/nowhere/potluck")
stopifnot(is.null(potluck_command(required = FALSE)), grepl("potluck.command", said(potluck_fit(pressure ~ age, many))))
options(potluck.command = named)

## The generics of broom find their methods.
if (requireNamespace("generics", quietly = TRUE)) {
  stopifnot(identical(generics::tidy(fit)$estimate, unname(coef(fit))))
  stopifnot(!"conf.low" %in% names(generics::tidy(fit, conf.int = FALSE)))
  stopifnot(generics::glance(fit)$nobs == 100000, generics::glance(doubtful)$findings == nrow(doubtful$findings))
}

cat("every test of fits ran\n")
