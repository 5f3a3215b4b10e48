/** The studio's own script: htmx for pages and forms, a guarded morph for pushes, a few light-DOM elements. */
import "./studio.css";
import "./htmx";
import "htmx-ext-ws";
import { listen as listenToActions } from "./actions";
import { start } from "./current";
import { StudioDrop } from "./drop";
import { listen as listenToEdits, StudioEditor } from "./editor";
import { StudioKeys } from "./keys";
import { StudioPlayer } from "./player";
import { connect } from "./push";
import { StudioSample } from "./sample";
import { StudioWave } from "./wave";

connect(); // before htmx looks at the page: the socket opens then
listenToActions();
listenToEdits();

customElements.define("studio-drop", StudioDrop);
customElements.define("studio-editor", StudioEditor);
customElements.define("studio-keys", StudioKeys);
customElements.define("studio-player", StudioPlayer);
customElements.define("studio-sample", StudioSample);
customElements.define("studio-wave", StudioWave);

start();
