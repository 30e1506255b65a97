/* How the tests look at a page. An object of functions, which `rig.py` calls one at a time. */
({
  /* Whether the view has what it shows. */
  ready() {
    const view = document.querySelector("main .view");
    return view !== null && !view.hasAttribute("aria-busy") && view.querySelector(".loading") === null;
  },

  /* What is wider than the page. */
  sticksOut() {
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const all = [...document.body.querySelectorAll("*")];
    const out = all.filter((each) => each.getBoundingClientRect().right > clientWidth + 1);
    return [`the page is ${scrollWidth} wide`, ...out.slice(0, 5).map((each) => each.outerHTML.slice(0, 120))];
  },

  /* Lines of text that lie over each other by more than a third of the smaller one. */
  overlaps() {
    const lines = this.lines();
    const over = [];
    lines.forEach(({ text, box: a }, one) => {
      for (const { text: other, box: b } of lines.slice(one + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const smaller = Math.min(a.width * a.height, b.width * b.height);
        if (wide > 0 && tall > 0 && wide * tall > smaller / 3) over.push(`${text} / ${other}`);
      }
    });
    return over.slice(0, 5);
  },

  /* The first lines of text that can be seen. */
  lines() {
    const found = [];
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode() && found.length < 600) {
      const { data, parentElement } = walker.currentNode;
      if (data.trim() === "" || parentElement.closest(".unseen, title, .chart-readout, option, .virtual")) continue;
      if (!parentElement.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      for (const box of range.getClientRects()) {
        if (box.width > 2 && !this.isCut(parentElement, box)) found.push({ text: data.trim(), box });
      }
    }
    return found;
  },

  /* Whether a part of a box lies outside of something that hides it. */
  isCut(element, box) {
    for (let at = element; at !== document.body; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const frame = at.getBoundingClientRect();
      if (box.bottom > frame.bottom + 1 || box.top < frame.top - 1) return true;
      if (box.right > frame.right + 1 || box.left < frame.left - 1) return true;
    }
    return false;
  },

  /* Where the main parts of the frame are. */
  regions() {
    const box = (selector) => {
      const found = document.querySelector(selector)?.getBoundingClientRect();
      return found && [found.left, found.top, found.width].map(Math.round);
    };
    return { menu: box(".menu"), main: box("main"), heading: box("main h1"), bar: box(".top-bar") };
  },

  /* Which share of the points of two pictures can be told apart. */
  async difference(pictures) {
    const draw = async (base64) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height);
    };
    const [one, other] = await Promise.all(pictures.map(draw));
    if (one.width !== other.width || one.height !== other.height) return 1;
    let differ = 0;
    for (let at = 0; at < one.data.length; at += 4) {
      const far = [0, 1, 2].some((colour) => Math.abs(one.data[at + colour] - other.data[at + colour]) > 24);
      if (far) differ += 1;
    }
    return differ / (one.width * one.height);
  },
})
