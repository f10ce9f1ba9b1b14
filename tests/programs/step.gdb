# Steps through a program line by line, and prints where it comes.
set pagination off
set confirm off
set debuginfod enabled off
set disable-randomization on
break main
run > /dev/null
python
for _ in range(400):
    frame = gdb.selected_frame()
    place = frame.find_sal()
    names = []
    while frame and frame.name() != 'main':
        names.append(frame.name())
        frame = frame.older()
    if not frame:
        break
    print('at line', place.line, 'in', ' '.join(reversed(names)) or 'main')
    gdb.execute('step', to_string=True)
end
kill
