/** `<studio-drop data-limit-mb data-accept>` around the upload form: a file is sent as soon as it is chosen or dropped. */
import { say } from "./words";

export class StudioDrop extends HTMLElement {
  private deep = 0; // dragenter and dragleave come for every child

  connectedCallback(): void {
    const input = this.querySelector<HTMLInputElement>('input[type="file"]');
    input?.addEventListener("change", () => this.take(input.files));
    this.addEventListener("dragenter", (event) => {
      event.preventDefault();
      this.deep += 1;
      this.toggleAttribute("data-over", true);
    });
    this.addEventListener("dragleave", () => {
      this.deep -= 1;
      this.toggleAttribute("data-over", this.deep > 0);
    });
    this.addEventListener("dragover", (event) => event.preventDefault());
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.deep = 0;
      this.toggleAttribute("data-over", false);
      const files = event.dataTransfer?.files;
      if (!input || !files?.length) return;
      input.files = files;
      this.take(files);
    });
  }

  /** Why a file is not even sent; "" when it is. */
  refusal(files: ArrayLike<{ name: string; size: number }>): string {
    const file = files[0];
    if (files.length !== 1 || !file) return say("one-file");
    const limit = Number(this.dataset.limitMb) || 200;
    if (file.size > limit * 1_000_000) return say("too-large", { limit });
    const kinds = (this.dataset.accept ?? "").split(",").map((kind) => kind.trim().toLowerCase()).filter(Boolean);
    if (kinds.length && !kinds.some((kind) => file.name.toLowerCase().endsWith(kind))) return say("wrong-kind", { kinds: kinds.join(", ") });
    return "";
  }

  private take(files: FileList | null): void {
    if (!files?.length) return;
    const refusal = this.refusal(files);
    const error = this.querySelector("#upload-error");
    if (error) error.textContent = refusal;
    const form = this.querySelector("form");
    const input = this.querySelector<HTMLInputElement>('input[type="file"]');
    if (refusal) {
      if (input) input.value = "";
      return;
    }
    const state = this.querySelector<HTMLElement>(".drop-state");
    if (state) {
      state.hidden = false;
      state.textContent = say("uploading", { name: files[0]!.name });
    }
    this.toggleAttribute("data-busy", true);
    form?.requestSubmit();
  }
}
