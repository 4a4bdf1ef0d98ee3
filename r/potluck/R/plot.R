# Coefficients with their intervals, in base graphics.

plot.potluck_fit <- function(x, xlab = NULL, main = NULL, ...) {
  features <- x$model$coefficients
  is_level <- vapply(features, function(one) !is.null(one$term$level), NA)
  # Each for a rise by half of the range that was kept, so that columns can be compared.
  rise <- vapply(features, function(one) diff(as.numeric(unlist(one$range))) / 2, 0)
  rise[is_level] <- 1
  unit <- vapply(features, function(one) if (is.null(one$unit)) "" else paste0(" ", one$unit), "")
  names <- plain(names(x$coefficients)[-1])
  step <- ifelse(is_level, "", sprintf("\n+%s%s", trimws(formatC(rise, digits = 3, format = "fg")), plain(unit)))
  labels <- paste0(names, step)
  estimate <- x$coefficients[-1] * rise
  low <- x$intervals[-1, 1] * rise
  high <- x$intervals[-1, 2] * rise
  has_finding <- !is.na(x$marks[-1])
  clear <- low > 0 | high < 0
  colour <- ifelse(clear, "#0b5a8a", "#8b95a1")

  if (is.null(xlab)) {
    label <- paste0(x$label, if (is.null(x$model$label_unit)) "" else paste0(" (", x$model$label_unit, ")"))
    xlab <- paste0("change of ", plain(label), "\nwhen a feature rises by the step at its name, or its level applies")
  }
  if (is.null(main)) main <- sprintf("%s%% intervals", format(100 * x$level))

  old <- par(no.readonly = TRUE)
  on.exit(par(old))
  plot.new()
  top <- if (any(has_finding)) 0.95 else 0.65
  # Many labels are written smaller, so that they stay apart.
  row <- (par("din")[[2]] - 1.05 - top) / length(labels)
  size <- min(0.9, max(0.3, row / (1.25 * max(strheight(labels, units = "inches")))))
  left <- max(strwidth(labels, units = "inches", cex = size)) + 0.35
  par(mai = c(1.05, min(left, 0.5 * par("din")[[1]]), top, 0.25))
  plot.window(xlim = range(0, low, high), ylim = c(length(labels) + 0.5, 0.5))
  abline(v = 0, col = "#6f7a87")
  at <- seq_along(labels)
  segments(low, at, high, at, col = colour, lwd = 2, lty = ifelse(has_finding, 2, 1))
  points(estimate, at, pch = ifelse(has_finding, 23, 21), col = colour, bg = ifelse(clear, colour, "white"), lwd = 1.5)
  axis(1, col = "#6f7a87")
  axis(2, at = at, labels = labels, las = 1, tick = FALSE, cex.axis = size)
  title(main = main, line = if (any(has_finding)) 2.2 else 1)
  if (any(has_finding)) {
    title(main = "diamonds on dashed lines: something speaks against them, see print()", line = 0.9,
          cex.main = 0.85, font.main = 1)
  }
  title(xlab = xlab, line = 3.8)
  invisible(x)
}
