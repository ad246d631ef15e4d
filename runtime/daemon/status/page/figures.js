// Every figure of /status that has a label, as /figures describes them: a card of groups, and a table for each list.
//
// new FigureCards(groups, after, blocks)   groups: box of the groups; after: element that follows the cards of lists;
//                                          blocks: the answer of /figures
// cards.show(status)                       status: the answer of /status
"use strict";

const valueAt = (object, path) => path.split(".").filter(Boolean).reduce((at, name) => at?.[name], object);

// The tooltip of a heading or label says more.
function labelled(tag, figure) {
  const made = element(tag, figure.label);
  if (figure.help) made.title = figure.help;
  return made;
}

class FigureCards {
  constructor(groups, after, blocks) {
    this.values = [];  // [{path, form, row, box}]
    this.lists = [];   // [{path, figures, body}]
    let title = null, box = null;
    for (const block of blocks) {
      if (block.list) {
        after.before(this.card(block));
        continue;
      }
      if (block.title !== title) {
        title = block.title;
        box = document.createElement("dl");
        const group = document.createElement("section");
        group.append(element("h3", title), box);
        groups.append(group);
      }
      for (const figure of block.figures) box.append(this.row(block.object, figure));
    }
  }

  row(object, figure) {
    const row = document.createElement("div"), value = element("dd", "");
    if (figure.form === "line") row.className = "sentence";
    row.append(labelled("dt", figure), value);
    this.values.push({ path: `${object}.${figure.member}`, form: figure.form, row, box: value });
    return row;
  }

  card(block) {
    const id = "list_" + block.object.replaceAll(".", "_");
    const card = document.createElement("section"), title = element("h2", block.title);
    const heading = element("div", "", "heading"), scroll = element("div", "", "scroll");
    const table = document.createElement("table"), head = document.createElement("thead");
    const body = document.createElement("tbody"), labels = document.createElement("tr");
    card.className = "card" + (block.figures.length > 5 ? " wide" : "");
    title.id = id + "_title";
    body.id = id;
    for (const region of [card, scroll]) region.setAttribute("aria-labelledby", title.id);
    scroll.setAttribute("role", "region");
    scroll.tabIndex = 0;
    for (const figure of block.figures) {
      const label = labelled("th", figure);
      label.scope = "col";
      labels.append(label);
    }
    head.append(labels);
    table.append(head, body);
    table.className = "brief";
    scroll.append(table);
    heading.append(title);
    card.append(heading, scroll);
    if (block.note) card.append(element("p", block.note, "soft note"));
    this.lists.push({ path: block.object, figures: block.figures, body });
    return card;
  }

  show(status) {
    for (const { path, form, row, box } of this.values) {
      const text = figureText(form, valueAt(status, path));
      row.hidden = !text;
      if (box.textContent !== text) box.textContent = text;
    }
    for (const group of new Set(this.values.map(({ row }) => row.closest("section"))))
      group.hidden = [...group.querySelectorAll("dl > div")].every((row) => row.hidden);
    for (const { path, figures, body } of this.lists) {
      const items = valueAt(status, path) || [];
      body.replaceChildren(...items.map((item) => this.line(item, figures)));
      if (items.length) continue;
      const none = document.createElement("tr"), cell = element("td", "none yet", "none");
      cell.colSpan = figures.length;
      none.append(cell);
      body.append(none);
    }
  }

  line(item, figures) {
    const row = document.createElement("tr");
    figures.forEach((figure, i) => {
      const value = item[figure.member], style = i === 0 ? "name" : value === true ? "good" : "";
      row.append(element("td", figureText(figure.form, value) || dash, style));
    });
    return row;
  }
}
