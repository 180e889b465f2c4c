// Lets the search work on a page that was opened as a file: browsers start no Worker for one. This class runs the
// worker's script in an iframe, with as much of the interface as the theme's search uses.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #inner;
    #early = []; // sent before the script was there

    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.#inner = inner;
        this.#early.forEach((data) => this.postMessage(data));
      };
      script.onerror = () => this.dispatchEvent(new ErrorEvent("error", { message: `${url} can't be read` }));
      inner.document.body.append(script);
    }

    postMessage(data) {
      if (this.#inner) this.#inner.dispatchEvent(new MessageEvent("message", { data }));
      else this.#early.push(data);
    }
  };
}
