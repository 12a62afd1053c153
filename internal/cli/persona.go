package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"berth/commands"
)

func (a *app) personaCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "persona", Short: "What agents are told to be: content, never policy", Args: args(),
		Example: "  berth persona define reviewer --file reviewer.md\n  berth persona ls\n  berth spawn --persona reviewer -- agent",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.personaDefine(), a.personaRemove(), a.personaList(), a.personaShow())
	return c
}

func (a *app) personaDefine() *cobra.Command {
	var in commands.PersonaInput
	var file string
	c := &cobra.Command{
		Use: "define NAME --file FILE", Short: short(commands.PersonaDefine.Contract), Args: args("NAME"),
		Example: "  berth persona define reviewer --file reviewer.md\n  echo 'You review changes.' | berth persona define reviewer --file -",
		RunE: func(c *cobra.Command, names []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			var err error
			if in.Text, err = a.textOf("--file", file, commands.MaxPersona); err != nil {
				return err
			}
			in.Name = names[0]
			r, err := ask(ctx, a, commands.PersonaDefine, in)
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) {
				if !r.Changed {
					fmt.Fprintf(w, "persona %s is so already\n", r.Name)
					return
				}
				fmt.Fprintf(w, "persona %s is defined\nnext: berth spawn --persona %s\n", r.Name, r.Name)
			})
		},
	}
	c.Flags().StringVar(&file, "file", "", "where its text is; - reads standard input")
	c.Flags().StringVar(&in.Model, "model", "", "model that it is meant for")
	return c
}

// textOf reads the text that a flag names, at most most bytes of it.
func (a *app) textOf(flag, file string, most int64) (string, error) {
	if file == "" {
		return "", usage("%s is missing", flag).WithHint("name a file, or - for standard input")
	}
	b, err := a.contentsOf(flag, file, most)
	return string(b), err
}

// contentsOf reads a file, or standard input, of at most most bytes; what names
// it in a refusal.
func (a *app) contentsOf(what, file string, most int64) ([]byte, error) {
	var from io.Reader = a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, usage("%s: there is no file %s", what, clip(file))
			}
			return nil, usage("%s: %s can't be read", what, clip(file))
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return nil, usage("%s: %s can't be read", what, clip(file))
	case int64(len(b)) > most:
		return nil, usage("%s: it is longer than %d bytes", what, most)
	}
	return b, nil
}

func (a *app) personaRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: short(commands.PersonaRemove.Contract), Args: args("NAME"),
		RunE: func(c *cobra.Command, names []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.PersonaRemove, commands.PersonaRef{Name: names[0]})
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) { fmt.Fprintf(w, "persona %s is removed\n", r.Name) })
		},
	}
}

func (a *app) personaList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: short(commands.PersonaList.Contract), Args: args(),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.PersonaList, commands.Empty{})
			if err != nil {
				return err
			}
			return list(a, r, r.Items, func(w io.Writer) {
				t := a.table("NAME", "MODEL", "BYTES", "DEFINED")
				for _, p := range r.Items {
					t.add(string(p.Name), p.Model, strconv.Itoa(p.Bytes), p.DefinedAt)
				}
				t.printOr(w, "There is no persona. Next: berth persona define NAME --file FILE")
			})
		},
	}
}

func (a *app) personaShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: short(commands.PersonaShow.Contract), Args: args("NAME"),
		RunE: func(c *cobra.Command, names []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.PersonaShow, commands.PersonaRef{Name: names[0]})
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) { _, _ = io.WriteString(w, r.Text) })
		},
	}
}
