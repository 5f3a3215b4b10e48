// `npm run build` writes static/dist: hashed names, immutable; manifest.json is what django-vite reads.
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "/static/",
  build: {
    outDir: "dist",
    emptyOutDir: true,
    manifest: "manifest.json",
    target: "es2022",
    rollupOptions: {
      input: "src/studio.ts",
      // htmx holds an eval behind allowEval, which htmx.ts switches off
      onwarn: (warning, warn) => (warning.code === "EVAL" && warning.id?.includes("htmx.org") ? undefined : warn(warning)),
    },
  },
  server: { host: "127.0.0.1", port: 5173, strictPort: true, cors: true, origin: "http://127.0.0.1:5173" },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts"], setupFiles: ["src/testing.setup.ts"] },
});
