"use strict";
// Nothing here is needed to change something: it only makes reading and deciding faster.
(() => {
  const year = 31536000;
  const tellZone = () => {
    if (document.cookie.includes("afterword_zone=")) return;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone) document.cookie = `afterword_zone=${encodeURIComponent(zone)};path=/pages;max-age=${year};samesite=strict`;
  };
  const follow = document.querySelector("[data-follow]");
  if (follow) {
    tellZone();
    location.replace(follow.href);
  }
  const { later } = document.currentScript.dataset;
  // What takes long comes after the page is shown.
  addEventListener("load", () => setTimeout(() => {
    tellZone();
    if (!later) return;
    const script = document.createElement("script");
    script.src = later;
    document.head.append(script);
  }));
  // A search that fails becomes a page of its own, which says why. A part that comes later keeps the link to it.
  const leave = (element) => {
    if (element?.matches("form")) element.submit();
  };
  document.addEventListener("htmx:before:response", (event) => {
    const { sourceElement, response } = event.detail.ctx;
    if (response.raw.ok && !response.raw.redirected) return;
    event.preventDefault();
    leave(sourceElement);
  });
  document.addEventListener("htmx:error", (event) => leave(event.detail.ctx?.sourceElement));
  document.addEventListener("keydown", (event) => {
    if (document.body.dataset.shortcuts !== "on" || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const target = [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === event.key);
    if (!target) return;
    event.preventDefault();
    if (target.matches("input, textarea")) target.focus();
    else target.click();
  });
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "yes";
    const button = event.target.querySelector("button");
    if (button) button.setAttribute("aria-busy", "true");
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      form.querySelector("button")?.removeAttribute("aria-busy");
    }
  });
})();
