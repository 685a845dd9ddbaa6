// Light or dark: as the system is, until the button says otherwise. Not a module, so that it runs before the page is
// painted, and a page that was made dark never flashes up white.

(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try { return localStorage.getItem("parabit-theme"); } catch { return null; } // storage may be forbidden
  };
  const told = () => root.dispatchEvent(new CustomEvent("theme"));
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  if (kept() === "dark" || kept() === "light") root.dataset.theme = kept();
  system.addEventListener("change", told);

  window.parabitTheme = {
    isDark,
    toggle() {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        // Back at what the system says, follow it again.
        if (isDark() === system.matches) {
          localStorage.removeItem("parabit-theme");
          delete root.dataset.theme;
        } else localStorage.setItem("parabit-theme", root.dataset.theme);
      } catch { /* kept for this page alone */ }
      told();
    },
  };
})();
