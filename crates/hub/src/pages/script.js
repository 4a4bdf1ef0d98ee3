// What makes pages nicer where there is JavaScript. Everything works without it.
"use strict";

const wait = (milliseconds, work) => {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
};

const parse = async (response) => new DOMParser().parseFromString(await response.text(), "text/html");

// Buttons that copy.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const words = button.firstChild;
  const before = words.data;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    words.data = "Copied";
  } catch {
    // Browsers give the clipboard to pages served by HTTPS or from this machine only: select the text instead.
    const text = button.parentElement.querySelector("input, pre");
    if (text.select) text.select();
    else getSelection().selectAllChildren(text);
    words.data = "Press Ctrl+C";
  }
  setTimeout(() => { words.data = before; }, 2000);
});
const showCopyButtons = (within) => {
  for (const button of within.querySelectorAll("button[data-copy]")) button.hidden = false;
};

// The explorer: a choice updates the result in place.
const explore = (form) => {
  const result = document.getElementById(form.dataset.live);
  const status = document.getElementById("status");
  const label = form.elements.label;
  let latest = 0;

  // The label's own column cannot help to explain it.
  const own = new Map();
  const exclude = () => {
    for (const box of form.querySelectorAll("input[name=feature]")) {
      const isLabel = label.value === box.value || label.value.startsWith(`${box.value}=`);
      if (isLabel && !box.disabled) {
        own.set(box, box.checked);
        box.checked = false;
        box.disabled = true;
      } else if (!isLabel && box.disabled) {
        box.disabled = false;
        box.checked = own.get(box) ?? true;
      }
    }
  };

  const update = async () => {
    if (!label.value) return;
    const query = new URLSearchParams(new FormData(form));
    // What is usual need not be said in the address.
    if (query.get("model") === "linear") query.delete("model");
    if (query.get("learner") === "posterior") query.delete("learner");
    if (query.get("level") === "0.95") query.delete("level");
    const address = `${form.action}?${query}`;
    const turn = ++latest;
    result.setAttribute("aria-busy", "true");
    status.textContent = "Fitting …";
    try {
      const page = await parse(await fetch(address));
      if (turn !== latest) return;
      const fresh = page.getElementById(result.id);
      if (!fresh) {
        location.assign(address);
        return;
      }
      result.replaceChildren(...fresh.childNodes);
      showCopyButtons(result);
      history.replaceState(null, "", address);
      document.title = page.title;
      const heading = result.querySelector("h2, strong");
      status.textContent = heading ? `Updated: ${heading.textContent}` : "Updated.";
    } catch {
      if (turn === latest) status.textContent = "The hub did not answer. Press Fit to try again.";
    } finally {
      if (turn === latest) result.removeAttribute("aria-busy");
    }
  };

  const soon = wait(150, update);
  form.addEventListener("change", (event) => {
    if (event.target === label) exclude();
    soon();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
  });
  exclude();
};

// The form of a new study: the plan while typing, and lines that come and go without losing one's place.
const design = (form) => {
  // Its buttons are named "action", so the property of that name is not the address.
  const address = form.getAttribute("action");
  let latest = 0;
  const send = (action) => {
    const body = new URLSearchParams(new FormData(form));
    body.set("action", action);
    body.set("live", "on");
    return fetch(address, { method: "POST", body });
  };
  const plan = async () => {
    const turn = ++latest;
    const panel = document.getElementById(form.dataset.plan);
    panel.setAttribute("aria-busy", "true");
    try {
      const fresh = (await parse(await send("plan"))).getElementById(panel.id);
      if (fresh && turn === latest) panel.replaceChildren(...fresh.childNodes);
    } catch {
      // The button that shows the plan is still there.
    } finally {
      panel.removeAttribute("aria-busy");
    }
  };
  const soon = wait(400, plan);
  form.addEventListener("input", (event) => {
    if (event.target.id !== "sealed" && event.target.type !== "file") soon();
  });
  form.addEventListener("submit", async (event) => {
    const action = event.submitter?.value ?? "plan";
    if (!/^(add|remove)-/.test(action)) return;
    event.preventDefault();
    latest += 1;
    try {
      const page = await parse(await send(action));
      const fresh = page.getElementById(form.id);
      if (!fresh) throw new Error("the page has no form");
      form.replaceChildren(...fresh.childNodes);
      prepareFiles(form);
      form.querySelector("[autofocus]")?.focus();
    } catch {
      const button = document.createElement("input");
      Object.assign(button, { type: "hidden", name: "action", value: action });
      form.append(button);
      HTMLFormElement.prototype.submit.call(form);
    }
  });
};

// A file fills a text field.
const prepareFiles = (within) => {
  for (const field of within.querySelectorAll("[data-fills]")) {
    field.hidden = false;
    const input = field.querySelector("input");
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (file) document.getElementById(field.dataset.fills).value = await file.text();
    });
  }
};

showCopyButtons(document);
prepareFiles(document);
document.querySelectorAll("form[data-live]").forEach(explore);
document.querySelectorAll("form[data-plan]").forEach(design);
document.getElementById("problems")?.focus();
