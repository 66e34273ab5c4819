import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that the page also works below a path.
  base: "./",
  build: {
    outDir: "dist",
    target: "es2022",
    rollupOptions: { input: ["index.html", "review.html"] },
    // Nothing as data: in the code; the server's policy needs no exception for it.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1500,
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
});
